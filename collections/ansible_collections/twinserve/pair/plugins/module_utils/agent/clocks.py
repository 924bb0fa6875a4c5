"""The limit of the GPU's clock: that the driver took it proves nothing, so the clock itself is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..shell import CommandError, run

# MHz from one of the GPU's clocks to the next: the driver may round the limit up.
_STEP = 15


def parse_clocks(text: str) -> list[int]:
    """One MHz a line; a GPU that does not know says `[N/A]`."""
    return [int(line) for line in text.split() if line.isdigit()]


def problems(clock: Mapping[str, Any] | None) -> list[str]:
    """Say that the limit of the plan ({max, gpu}) does not hold, or cannot be proved."""
    if not clock:
        return []
    chosen = ["-i", str(clock["gpu"])] if clock.get("gpu") else []
    query = ["--query-gpu=clocks.sm", "--format=csv,noheader,nounits"]
    try:
        clocks = parse_clocks(run(["nvidia-smi", *chosen, *query], timeout=5))
    except CommandError as error:
        return [f"whether gpu_clock_max holds is not known: {error}"]
    if not clocks:
        return ["whether gpu_clock_max holds is not known: nvidia-smi reads no clock"]
    if max(clocks) <= clock["max"] + _STEP:
        return []
    return [
        f"the GPU runs at {max(clocks)} MHz, above gpu_clock_max {clock['max']}: the driver took the limit "
        "and does not hold it"
    ]
