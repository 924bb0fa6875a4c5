"""Which one GPU the container gets: pure, from what the node has, what is set, and what the engine runs on.

A GPU is always passed by its UUID: nvidia-smi counts by bus and CUDA by speed, so a number means two things.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Choice:
    """The UUID (None: the container gets all), why there is none, and what is to be said."""

    uuid: str | None = None
    fault: str | None = None
    note: str | None = None


def choose(node: Mapping[str, Any], settings: Mapping[str, Any], release: Mapping[str, Any]) -> Choice:
    """What `gpu_uuid` or `gpu_index` say, else the one whose name has the engine's `gpu_name` in it."""
    gpu = node.get("gpu") or {}
    names, uuids = gpu.get("names") or [], gpu.get("uuids") or []
    uuid, index, name = settings.get("gpu_uuid"), settings.get("gpu_index"), release.get("gpu_name")
    if not uuids:
        return Choice(uuid)  # a node that could not be asked has a fault of its own
    if uuid:
        return Choice(
            uuid, None if uuid in uuids else f"gpu_uuid {uuid} is no GPU of this node: nvidia-smi -L"
        )
    if index is not None:
        if index >= len(uuids):
            return Choice(None, f"gpu_index is {index}: this node has {_count(len(uuids))}: nvidia-smi -L")
        return Choice(uuids[index], note=f"warn gpu_index resolved to {uuids[index]} ({names[index]})")
    if not name:
        return Choice()
    found = [one for one, title in zip(uuids, names, strict=True) if name in title]
    if len(found) == 1:
        return Choice(found[0])
    titles = ", ".join(title.removeprefix("NVIDIA ") for title in names)
    return Choice(None, f"expected one {name}, found {len(found)} ({titles}); set gpu_uuid")


def _count(number: int) -> str:
    return "one GPU, 0" if number == 1 else f"{number} GPUs, 0 to {number - 1}"


def chosen(
    node: Mapping[str, Any], settings: Mapping[str, Any], release: Mapping[str, Any]
) -> dict[str, Any]:
    """The choice as plain data."""
    return asdict(choose(node, settings, release))
