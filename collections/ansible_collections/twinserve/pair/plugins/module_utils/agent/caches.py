"""What the kernel keeps of files: on unified memory the GPU needs the same pages, and whole ones."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from ..lost_device import kernel_log
from ..meminfo import Memory
from ..services import parse_show
from ..shell import CommandError, run
from . import paths

# GiB that are free at least while weights are loaded: below it the driver fails, whatever could be freed.
_FLOOR = 8.0
_NO_MEMORY = "NV_ERR_NO_MEMORY"
# Seconds for each program that is asked. The supervisor gives a whole look 12, and three that it misses end
# the start.
_QUICK = 3.0
_REST = 5.0


def drop() -> None:
    """Let the kernel forget all files that are on disk: an engine counts what is free, not what could be.

    What cannot be done is said in the journal, and keeps no rank down.
    """
    _order(paths.VM / "drop_caches", "3")


def guard(memory: Memory) -> list[str]:
    """While weights are loaded: have room made when hardly anything is free and much is kept.

    In a unit of its own, since it can take longer than whoever looks at the rank waits for an answer. There
    is one such unit at a time, and it rests before it ends. Returns why it could not be started.
    """
    kept = memory.available_gib - memory.free_gib
    if memory.free_gib >= _FLOOR or kept < _FLOOR:
        return []
    try:
        shown = parse_show(
            run(["systemctl", "show", paths.GUARD, "--property", "ActiveState"], timeout=_QUICK)
        )
        if shown and shown[0].get("ActiveState") in ("active", "activating", "deactivating"):
            return []
        words = ["--quiet", "--collect", f"--unit={paths.GUARD}", "--description=Twinserve load_guard"]
        run(["systemd-run", *words, paths.PROGRAM, "unit-guard"], timeout=_QUICK)
    except CommandError as error:
        return [f"load_guard could not make room: {error}"]
    return []


def relieve() -> None:
    """Make room and whole pages, then rest: what is read next is kept again at once."""
    drop()
    _order(paths.VM / "compact_memory", "1")
    time.sleep(_REST)


def starved(since: float) -> str | None:
    """The kernel's line about a driver that got no memory, since that time (seconds of the epoch).

    A log that cannot be read, or not soon, tells nothing.
    """
    try:
        log = kernel_log("--since", f"@{since:.0f}", timeout=_QUICK)
    except CommandError:
        return None
    return next((line.strip() for line in log.splitlines() if _NO_MEMORY in line), None)


def _order(file: Path, word: str) -> None:
    try:
        file.write_text(word)
    except OSError as error:
        print(f"{file} could not be written: {error}", file=sys.stderr)
