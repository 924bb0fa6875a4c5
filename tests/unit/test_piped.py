"""What stands in the pipe of an image: passes everything on, counts it, and leaves complaints to others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import progress

DATA = os.urandom(3_000_001)


def piped(
    folder: Path, total: int, after: str = "", data: bytes = DATA
) -> tuple[subprocess.CompletedProcess[bytes], dict[str, Any]]:
    """What went through the pipe, and what was noted."""
    (folder / "twinserve").symlink_to(Path(progress.__file__).parent)
    notes = folder / "numbers.json"
    script = f"set -o pipefail; {sys.executable} -P -m twinserve.piped {total} {after}"
    env = {**os.environ, "PYTHONPATH": str(folder), progress.VARIABLE: str(notes)}
    done = subprocess.run(["bash", "-c", script], input=data, env=env, capture_output=True, check=False)
    return done, progress.read(notes) or {}


@pytest.mark.parametrize(
    ("said", "noted"),
    [(4_000_000, 4_000_000), (2_000_000, len(DATA)), (0, None)],
    ids=["less came", "more came", "size not known"],
)
def test_m20_everything_passes_and_is_counted(tmp_path: Path, said: int, noted: int | None) -> None:
    done, numbers = piped(tmp_path, said)
    assert (done.returncode, done.stdout, done.stderr) == (0, DATA, b"")
    assert (numbers["bytes"], numbers["total"]) == (len(DATA), noted)
    assert numbers["rate"] > 0 and json.dumps(numbers)


def test_nothing_at_all_is_passed_on_too(tmp_path: Path) -> None:
    done, numbers = piped(tmp_path, 5, data=b"")
    assert (done.returncode, done.stdout, numbers["bytes"]) == (0, b"", 0)


def test_c03_an_end_that_breaks_off_has_the_last_word(tmp_path: Path) -> None:
    done, numbers = piped(tmp_path, 5, "| { head -c 1000 >/dev/null; echo no room >&2; exit 1; }")
    assert (done.returncode, done.stderr) == (1, b"no room\n")
    assert numbers["bytes"] < len(DATA)
