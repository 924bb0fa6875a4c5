"""Runs other programs; a failure is one line that says which and why."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from .errors import LabError


def attempt(argv: Sequence[str], stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program, keep its output, and leave the judgement to the caller.

    A program that is not there answers 127, as in a shell.
    """
    try:
        return subprocess.run(
            list(argv),
            input=stdin,
            text=True,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL if stdin is None else None,
        )
    except FileNotFoundError:
        return subprocess.CompletedProcess(list(argv), 127, "", f"{argv[0]}: not installed")


def run(argv: Sequence[str], stdin: str | None = None) -> str:
    """Run a program and return what it printed.

    Raises LabError with the command and its last line when it fails.
    """
    done = attempt(argv, stdin)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise LabError(f"`{' '.join(argv)}` failed ({done.returncode}): {said}")
    return done.stdout
