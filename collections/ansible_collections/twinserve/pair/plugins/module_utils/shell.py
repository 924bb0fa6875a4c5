"""Run a program on the node and say in one line what went wrong."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence

_HINT = re.compile(r"(See|Run) '.* --help'")  # how docker run ends whatever it says


class CommandError(RuntimeError):
    """A program was missing, took too long or ended with an error; the text names it and its last line.

    `said` is all that it printed about the error.
    """

    def __init__(self, text: str, said: str = "") -> None:
        super().__init__(text)
        self.said = said


class CommandMissing(CommandError):
    """The program is not installed."""


class CommandTimeout(CommandError):
    """A program took too long."""


def run(
    argv: Sequence[str], *, stdin: str = "", timeout: float = 60.0, env: Mapping[str, str] | None = None
) -> str:
    """Return what `argv` prints; raise `CommandError` when it fails or takes over `timeout` seconds."""
    try:
        done = subprocess.run(
            list(argv), input=stdin, capture_output=True, text=True, timeout=timeout, env=env, check=False
        )
    except FileNotFoundError as error:
        raise CommandMissing(f"{argv[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise CommandTimeout(f"{argv[0]} did not answer within {timeout:.0f} s") from error
    if done.returncode:
        said = done.stderr or done.stdout
        raise CommandError(f"{' '.join(argv[:3])}: {last_line(said)} (exit {done.returncode})", said)
    return done.stdout


def last_line(text: str) -> str:
    """The last line that says anything: programs put the reason there."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _HINT.match(line)]
    return lines[-1] if lines else "no output"
