"""Memory of the one GPU, for an engine that takes a share of all of it whatever is there already. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import gpu_choice


def scarce(node: Mapping[str, Any], settings: Mapping[str, Any], release: Mapping[str, Any]) -> str | None:
    """Say that less is free than the engine takes: `memory.gpu_share` names the setting that says how much.

    It is no fault: page cache counts as used, and is dropped before a start.
    """
    gpu, setting = node.get("gpu") or {}, (release.get("memory") or {}).get("gpu_share")
    known = dict(zip(gpu.get("uuids") or [], gpu.get("memory") or [], strict=False))
    memory = known.get(gpu_choice.choose(node, settings, release).uuid)
    if not setting or not memory:
        return None
    (total, used), share = memory, {**settings, **settings.get("effective", {})}[setting]
    if total - used >= share * total:
        return None
    return (
        f"the GPU has {total - used:.0f} of its {total:.0f} GiB free, the engine takes {share * total:.0f} "
        f"({setting} {share}): nvidia-smi shows programs, page cache goes before a start, and what a crash "
        "left goes with a reboot"
    )
