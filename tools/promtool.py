"""Bring promtool into .venv/bin, out of the distribution's package, without the service that comes with it.

Where apt has no such package the tests of the alert rules that need it are skipped, and say so.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BIN = Path(__file__).resolve().parent.parent / ".venv/bin"


def main() -> int:
    """Download, unpack, copy."""
    if shutil.which("promtool") or (BIN / "promtool").exists() or not shutil.which("apt-get"):
        return 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        done = subprocess.run(
            ["apt-get", "download", "--quiet", "prometheus"],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(f"no promtool: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            return 0
        (package,) = place.glob("prometheus_*.deb")
        subprocess.run(["dpkg-deb", "--extract", package, place], check=True)
        shutil.copy2(place / "usr/bin/promtool", BIN)
    return 0


if __name__ == "__main__":
    sys.exit(main())
