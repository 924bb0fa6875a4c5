"""Kernel and driver of the nodes of a pair: what differs between them, and since the pair last served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .rails import rank_name

Node = Mapping[str, Any]


def machine(node: Node) -> dict[str, str]:
    """What an update of the system changes; empty where it could not be read."""
    return {"kernel": node.get("kernel") or "", "driver": (node.get("gpu") or {}).get("driver") or ""}


def faults(nodes: Sequence[Node]) -> list[str]:
    """Drivers of two major versions: another CUDA on each rank. `nodes` are all of a pair, by rank."""
    drivers = [machine(node)["driver"] for node in nodes]
    if len({version.partition(".")[0] for version in drivers if version}) < 2:
        return []
    return [f"NVIDIA driver differs: {_each(drivers)}; ranks need one major version, update one of the nodes"]


def warnings(nodes: Sequence[Node], rank: int) -> list[str]:
    """What differs between the nodes, said by the head, and what changed on this one since it last served."""
    between = _differences(nodes) if rank == 0 else []
    return [*between, *_changes(nodes[rank], rank)]


def is_remembered(node: Node) -> bool:
    """Whether the configuration that is kept here, if any is, was proved on what runs now."""
    kept: Sequence[Node] = node.get("good") or []
    return not kept or kept[0].get("machine") == machine(node)


def _differences(nodes: Sequence[Node]) -> list[str]:
    found = []
    for part in ("kernel", "driver"):
        versions = [machine(node)[part] for node in nodes]
        if len({version for version in versions if version}) > 1:
            found.append(f"warn {part} differs: {_each(versions)}")
    return found


def _changes(node: Node, rank: int) -> list[str]:
    kept: Sequence[Node] = node.get("good") or []
    then: Mapping[str, str] = (kept[0].get("machine") or {}) if kept else {}
    now = machine(node)
    return [
        f"warn {rank_name(rank)}: {part} changed since it last served: {then[part]} -> {now[part]}"
        for part in now
        if then.get(part) and now[part] and then[part] != now[part]
    ]


def _each(versions: Sequence[str]) -> str:
    return ", ".join(f"{rank_name(rank)} {version or 'unknown'}" for rank, version in enumerate(versions))
