"""What the kernel keeps in memory of files that passed through once: the GPU needs the same memory."""

from __future__ import annotations

import os
from pathlib import Path


def forget(path: Path) -> None:
    """Let the kernel drop what it keeps of a file that is on disk; pages that a program has mapped stay."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


def settle(path: Path) -> None:
    """Wait until a file is on disk, so that no loss of power takes it back, then forget it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
