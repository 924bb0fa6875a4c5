"""What the kernel keeps of files: on unified memory the GPU needs the same pages, and whole ones."""

from __future__ import annotations

import sys
from pathlib import Path

from ..lost_device import kernel_log
from ..meminfo import Memory
from ..shell import CommandError
from . import paths

# GiB that are free at least while weights are loaded: below it the driver fails, whatever could be freed.
_FLOOR = 8.0
_NO_MEMORY = "NV_ERR_NO_MEMORY"


def drop() -> None:
    """Let the kernel forget all files that are on disk: an engine counts what is free, not what could be.

    What cannot be done is said in the journal, and keeps no rank down.
    """
    _order(paths.VM / "drop_caches", "3")


def relieve(memory: Memory) -> None:
    """While weights are loaded: make room and whole pages when hardly anything is free and much is kept."""
    kept = memory.available_gib - memory.free_gib
    if memory.free_gib >= _FLOOR or kept < _FLOOR:
        return
    drop()
    _order(paths.VM / "compact_memory", "1")


def starved(since: float) -> str | None:
    """The kernel's line about a driver that got no memory, since that time (seconds of the epoch).

    A log that cannot be read tells nothing.
    """
    try:
        log = kernel_log("--since", f"@{since:.0f}")
    except CommandError:
        return None
    return next((line.strip() for line in log.splitlines() if _NO_MEMORY in line), None)


def _order(file: Path, word: str) -> None:
    try:
        file.write_text(word)
    except OSError as error:
        print(f"{file} could not be written: {error}", file=sys.stderr)
