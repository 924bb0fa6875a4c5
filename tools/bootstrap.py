"""Make .venv and install a pinned requirements file into it.

On Debian and Ubuntu python3-venv is installed when it is missing. Run by the Makefile with the machine's own
Python, before anything of ours is installed. One line says what is wrong.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"


def fail(text: str) -> None:
    """End with one line that says what is wrong."""
    sys.exit(f"twinserve: {text}")


def run(argv: list[str], what: str) -> None:
    """Run quietly; on failure show the end of what the program said."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        fail(f"{what} failed: " + "\n  ".join(lines[-5:]))


def apt(*packages: str) -> None:
    """Install Debian packages, with sudo when we are not root."""
    if not shutil.which("apt-get"):
        fail(f"{', '.join(packages)} missing and there is no apt-get here: install it, then run make again")
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    run([*sudo, "apt-get", "update", "-q"], "apt-get update")
    run(
        [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-qy", *packages],
        "apt-get install",
    )


def make_venv() -> None:
    """Create the environment, unless it is there."""
    if (VENV / "bin/python").exists():
        return
    try:
        import ensurepip  # noqa: F401  (missing on Debian without python3-venv)
    except ImportError:
        apt(f"python{sys.version_info.major}.{sys.version_info.minor}-venv")
    run([sys.executable, "-m", "venv", str(VENV)], "making .venv")


def main() -> None:
    """Check the interpreter, make the environment, install."""
    if sys.version_info < (3, 11):
        fail(f"Python 3.11 or later is needed, {sys.executable} is {sys.version.split()[0]}")
    make_venv()
    pip = [str(VENV / "bin/python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    pins = ["-c", str(ROOT / "constraints.txt")]
    run([*pip, *pins, "-r", str(ROOT / sys.argv[1])], f"installing {sys.argv[1]}")


if __name__ == "__main__":
    main()
