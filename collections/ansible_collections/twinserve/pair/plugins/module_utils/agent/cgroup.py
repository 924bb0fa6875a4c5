"""Memory that a container's processes hold, where nvidia-smi has no figure for the GPU's."""

from __future__ import annotations

import re
from pathlib import Path

_GIB = 2**30


def used_gib(pid: int, root: Path = Path("/")) -> float | None:
    """Return GiB in use by the control group of this process; None when the kernel does not say."""
    try:
        group = re.search(r"^0::/(.+)$", (root / f"proc/{pid}/cgroup").read_text(), re.MULTILINE)
        if group is None:
            return None
        used = int((root / "sys/fs/cgroup" / group[1] / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return round(used / _GIB, 2)
