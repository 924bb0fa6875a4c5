"""A rank's whole log as a file of its own: the journal is one for the node, and forgets."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ..shell import run
from . import paths
from .errors import AgentError
from .unit import journal_argv

# A server that prints a line a request for months: its end is what tells.
_LINES = 200_000
_SLOW = 60.0


def save(rank: int, keep: int, invocation: str) -> Path | None:
    """Keep what one start of the rank printed, and of all such files the newest `keep`.

    Returns the file; None when nothing was printed, or none is to be kept. Raises OSError, AgentError or
    CommandError when it cannot be kept.
    """
    if keep < 1:
        return None
    # What the rank said last may still be on its way.
    run(["journalctl", "--sync"], timeout=_SLOW)
    paths.LOGS.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, handle = _create(rank)
    try:
        with os.fdopen(handle, "wb") as file:
            size = _fill(file, invocation)
    except BaseException:  # raised again: half a log is not left behind, whatever ended it
        path.unlink()
        raise
    if not size:
        path.unlink()
        return None
    _forget(keep)
    return path


def _create(rank: int) -> tuple[Path, int]:
    """Make a file that was not there: two starts may end within a second."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    number = 1
    while True:
        again = "" if number == 1 else f"-{number}"
        path = paths.LOGS / f"{stamp}{again}-rank{rank}.log.gz"
        with suppress(FileExistsError):
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        number += 1


def _fill(file: BinaryIO, invocation: str) -> int:
    """Write the lines of one start, each with its time; returns how many bytes they are."""
    argv = journal_argv(_LINES, invocation, "short-iso-precise")
    with (
        gzip.GzipFile(fileobj=file, mode="wb") as packed,
        subprocess.Popen([*argv, "--no-hostname"], stdout=subprocess.PIPE) as journal,
    ):
        if journal.stdout is not None:
            shutil.copyfileobj(journal.stdout, packed)
        size = packed.tell()
    if journal.returncode:
        raise AgentError(f"journalctl ended with {journal.returncode}")
    return size


def _forget(keep: int) -> None:
    saved = sorted(paths.LOGS.glob("*-rank*.log.gz"), key=lambda path: path.stat().st_mtime_ns)
    for path in saved[:-keep]:
        path.unlink()
