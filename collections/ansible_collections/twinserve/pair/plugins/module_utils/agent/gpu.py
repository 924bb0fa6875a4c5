"""GPU memory in use, as nvidia-smi counts it per process."""

from __future__ import annotations

from ..shell import CommandError, run

_ARGV = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
_MIB_PER_GIB = 1024


def parse_used(text: str) -> float | None:
    """Return GiB over all processes, None when a figure is missing (`[N/A]`)."""
    total = 0.0
    for line in text.splitlines():
        _, comma, used = line.partition(",")
        if not comma:
            continue
        try:
            total += float(used)
        except ValueError:
            return None
    return round(total / _MIB_PER_GIB, 2)


def used_gib() -> float | None:
    """Return GiB in use on this node, None when nvidia-smi cannot say (nothing is decided upon it)."""
    try:
        return parse_used(run(_ARGV, timeout=5))
    except CommandError:
        return None
