"""The simulated GPU: is there one, and the figure of its memory that the lab's nvidia-smi shows.

The figure is /lab/gpu.json, {"gib": x, "rank": r}, of fixed length and written in place. The process holds a
lock on the file while it lives, so that a figure left by SIGKILL can be told from a live one (`flock -n`).
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

LENGTH = 64
LOOKS = 10


def require_gpu(env: Mapping[str, str], root: Path) -> None:
    """RuntimeError if the container was started without GPUs, as torch would say it."""
    asked = env.get("NVIDIA_VISIBLE_DEVICES", "void") not in ("", "void", "none")
    shown = any((root / path).exists() for path in ("dev/nvidia0", "usr/bin/nvidia-smi"))
    if not asked and not shown:
        raise RuntimeError("No CUDA GPUs are available")


class GpuFigure:
    """GiB in use by this rank, for the lab to show; without a /lab directory nothing is written.

    RuntimeError if another engine of this machine lives.
    """

    def __init__(self, directory: Path, rank: int) -> None:
        self.path = directory / "gpu.json"
        self.rank = rank
        self._file: int | None = None
        if directory.is_dir():
            if _is_held(self.path):
                raise RuntimeError("CUDA out of memory: another engine holds this GPU")
            self._take(directory / ".gpu.json.new")

    def _take(self, fresh: Path) -> None:
        """Put a locked file that says 0 in the place of whatever a killed process left there."""
        self._file = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self.show(0.0)
        fresh.rename(self.path)

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


def _is_held(path: Path) -> bool:
    """Whether a live process holds the figure; the lab's own short looks do not count."""
    for _ in range(LOOKS):
        try:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except FileNotFoundError:
            return False
        except BlockingIOError:
            time.sleep(0.05)
    return True
