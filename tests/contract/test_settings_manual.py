"""The manual and the README's table are what the specification says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_manual_is_what_its_generator_writes() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "settings_manual.py"), "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), (
        f"run tools/settings_manual.py\n{done.stdout}{done.stderr}"
    )
