"""The simulated GPU: is there one, and the figure of its memory that the lab's nvidia-smi shows.

The figure is /lab/gpu.json, {"gib": x, "rank": r}, of fixed length and written in place. The process holds a
lock on the file while it lives, so that a figure left by SIGKILL can be told from a live one (`flock -n`).
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path

LENGTH = 64


def require_gpu(env: Mapping[str, str], root: Path) -> None:
    """RuntimeError if the container was started without GPUs, as torch would say it."""
    asked = env.get("NVIDIA_VISIBLE_DEVICES", "void") not in ("", "void", "none")
    shown = any((root / path).exists() for path in ("dev/nvidia0", "usr/bin/nvidia-smi"))
    if not asked and not shown:
        raise RuntimeError("No CUDA GPUs are available")


class GpuFigure:
    """GiB in use by this rank, for the lab to show; without a /lab directory nothing is written."""

    def __init__(self, directory: Path, rank: int) -> None:
        self.path = directory / "gpu.json"
        self.rank = rank
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644) if directory.is_dir() else None
        if self._file is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RuntimeError("CUDA out of memory: another engine holds this GPU") from None

    def show(self, gib: float) -> None:
        """Write the figure."""
        if self._file is not None:
            text = json.dumps({"gib": round(gib, 2), "rank": self.rank})
            os.pwrite(self._file, text.ljust(LENGTH - 1).encode() + b"\n", 0)

    def clear(self) -> None:
        """Remove the figure at the end of the process."""
        if self._file is not None:
            self.path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None
