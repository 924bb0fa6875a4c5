"""A host's /proc/meminfo: this machine's own, with the memory of a DGX Spark."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Callable
from pathlib import Path

_KIB_PER_GIB = 1024 * 1024


def render(real: str, total_gib: float, available_gib: float, files_gib: float | None = None) -> str:
    """The text of /proc/meminfo with that total, and `available_gib` GiB available.

    What the kernel keeps of files counts as available, and is not free: a tenth, when it is not given.

    Its length does not depend on the figures, so it can be written over the old text in one piece.
    """
    free_gib = available_gib * 0.9 if files_gib is None else max(0.1, available_gib - files_gib)
    figures = {"MemTotal": total_gib, "MemAvailable": available_gib, "MemFree": free_gib}

    def replace(match: re.Match[str]) -> str:
        gib = figures[match[1]]
        return f"{match[1] + ':':<15}{round(gib * _KIB_PER_GIB):>12} kB"

    return re.sub(r"^(MemTotal|MemAvailable|MemFree):\s+\d+ kB", replace, real, flags=re.MULTILINE)


def available(setting_gib: float, engine_gib: float) -> float:
    """GiB left for others: what was set, less what the engine holds; never quite nothing."""
    return max(0.1, setting_gib - engine_gib)


def rewrite(file: Path, text: Callable[[], str]) -> None:
    """Write in place: hosts and containers have this very file bound over their own.

    The text is asked for while nobody else writes: otherwise an old one could come after a new one.
    """
    file.touch()
    with file.open("r+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.write(text())
        stream.truncate()
