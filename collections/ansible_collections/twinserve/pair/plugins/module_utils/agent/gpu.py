"""GPU memory in use on this node, over all processes."""

from __future__ import annotations

from ..gpus import parse_processes
from ..shell import CommandError, run

_ARGV = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]


def used_gib() -> float | None:
    """Return GiB in use, None when nvidia-smi cannot say (nothing is decided upon it)."""
    try:
        held = parse_processes(run(_ARGV, timeout=5)).values()
    except CommandError:
        return None
    known = [gib for gib in held if gib is not None]
    return round(sum(known), 2) if len(known) == len(held) else None
