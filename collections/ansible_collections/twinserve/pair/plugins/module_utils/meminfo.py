"""Memory of a node from /proc/meminfo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_KIB_PER_GIB = 1024 * 1024


@dataclass(frozen=True)
class Memory:
    """Memory in GiB. On a GB10 this is also the GPU's memory.

    The contiguous area (CMA) is in kB, as the kernel counts it; None where the kernel has no such area.
    """

    total_gib: float
    available_gib: float
    free_gib: float
    cma_total_kb: int | None = None
    cma_free_kb: int | None = None

    def as_dict(self) -> dict[str, float]:
        """Return total and available memory as the agent reports them."""
        return {"total_gib": round(self.total_gib, 2), "available_gib": round(self.available_gib, 2)}


def parse_meminfo(text: str) -> dict[str, int]:
    """Parse /proc/meminfo into name -> KiB (counts such as HugePages_Total as they are)."""
    values: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        number = rest.split()[:1]
        if number and number[0].isdigit():
            values[name.strip()] = int(number[0])
    return values


def read_memory(root: Path = Path("/")) -> Memory:
    """Read memory below `root`. Raises OSError or KeyError when the kernel's file lacks a figure."""
    values = parse_meminfo((root / "proc/meminfo").read_text(encoding="utf-8"))
    total, available, free = (values[name] / _KIB_PER_GIB for name in ("MemTotal", "MemAvailable", "MemFree"))
    return Memory(total, available, free, values.get("CmaTotal"), values.get("CmaFree"))
