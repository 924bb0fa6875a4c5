"""What each rank would run, for a run that only looks. Words in <> stand for what only a node can tell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from . import gpu_choice
from .docker_argv import docker_argv
from .gids import find_v2
from .node_faults import rank_runs
from .sysfs import Device

Node = Mapping[str, Any] | None


def inputs(
    nodes: Sequence[Node],
    names: Sequence[str],
    settings: Sequence[Mapping[str, Any]],
    release: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """What rendering the ranks needs of each node, by rank; None is a node that could not be looked at."""
    return [
        {**_input(node or {}, name, own), "gpu_uuid": _gpu(node or {}, name, own, release)}
        for node, name, own in zip(nodes, names, settings, strict=True)
    ]


def commands(plans: Sequence[Mapping[str, Any]], names: Sequence[str], nodes: Sequence[Node]) -> list[str]:
    """The whole command of each rank, by rank, with the addresses and GIDs that a start would find now."""
    head = plans[0]["expected_link"]
    master = head[0]["address"] if head else f"<rail address of {names[0]}>"
    shown = []
    for plan, name, node in zip(plans, names, nodes, strict=True):
        # A digest over placeholders would be none of any rank.
        known = plan if node else {**plan, "digest": f"<digest of {name}>"}
        link = {"master": master, "rails": _rails(plan["expected_link"], name, node)}
        shown.append(shlex.join(docker_argv(known, link)))
    return shown


def report(
    names: Sequence[str], nodes: Sequence[Node], unseen: Sequence[str], shown: Sequence[str]
) -> list[str]:
    """What a run that only looks can say of a pair that it cannot see whole: `unseen` says why not."""
    lines = [*unseen]
    lines += [_known(name, node) for name, node in zip(names, nodes, strict=True) if node]
    lines += [
        f"rank {rank} ({name}) would run: {command}"
        for rank, (name, command) in enumerate(zip(names, shown, strict=True))
    ]
    return [*lines, "Nothing was changed; run this again when all nodes of the pair can be reached"]


def _input(node: Mapping[str, Any], name: str, own: Mapping[str, Any]) -> dict[str, Any]:
    caches = {"hf_cache": (node.get("hf") or {}).get("home"), "kernel_cache": node.get("kernel_cache")}
    titles = {"hf_cache": "model cache", "kernel_cache": "kernel cache"}
    return {
        "name": name,
        **{key: path or _set(own.get(key)) or f"<{titles[key]} of {name}>" for key, path in caches.items()},
        "image": node.get("image"),
        "expected_link": (node.get("rank_plan") or {}).get("expected_link") or [],
    }


def _gpu(
    node: Mapping[str, Any], name: str, own: Mapping[str, Any], release: Mapping[str, Any]
) -> str | None:
    """The one GPU that the container gets; None where it gets all."""
    wanted = release.get("gpu_name")
    return gpu_choice.choose(node, own, release).uuid or (f"<{wanted} of {name}>" if wanted else None)


def _set(path: str | None) -> str | None:
    """A path that needs no home directory to be understood."""
    return path if path and path.startswith("/") else None


def _rails(expected: Sequence[Mapping[str, Any]], name: str, node: Node) -> list[dict[str, Any]]:
    unknown = f"<GID index of {name}>"
    if not expected:
        words = {"netdev": "rail port", "hca": "RDMA devices", "address": "rail address"}
        return [{key: f"<{what} of {name}>" for key, what in words.items()} | {"gid_index": unknown}]
    devices = {one["hca"]: Device.from_json(one) for one in (node or {}).get("devices") or []}
    rails = []
    for rail in expected:
        device = devices.get(rail["hca"])
        found = find_v2(device.gids, rail["address"]) if device else None
        index = found.index if found else unknown
        rails.append({key: rail[key] for key in ("netdev", "hca", "address")} | {"gid_index": index})
    return rails


def _known(name: str, node: Mapping[str, Any]) -> str:
    ports = [
        f"{one['hca']} {one['state']} ({', '.join(one['addresses']) or 'no address'})"
        for one in node.get("devices") or []
    ]
    snapshots = (node.get("hf") or {}).get("snapshots") or {}
    whole = all(one["complete"] for one in snapshots.values())
    parts = [
        f"RDMA devices {', '.join(ports) or 'none'}",
        f"the image is {'here' if node.get('image') else 'not here'}",
        f"the model is {'here' if whole else 'not all here'}",
        f"its rank {'runs' if rank_runs(node) else 'does not run'}",
    ]
    return f"{name} was looked at: {'; '.join(parts)}"
