"""Weights that a worker reads from the head over NFS instead of having a copy: exports, mounts, checks.

The head exports the `hub` of its cache read-only, to the workers' rail addresses and nobody else, and lets
every reader be its owner: the payloads may be private to him (mode 0400), and root in a rank's container is
nobody to NFS. His token lies beside `hub`: nothing above it is given away, neither by its name nor by its
handle (`subtree_check`).
"""

from __future__ import annotations

import ipaddress
import os
import shlex
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from .services import node_runs

HOME = "/var/lib/twinserve/weights"  # a worker's cache root, for its rank
MOUNT = f"{HOME}/hub"
EXPORTS = "/etc/exports.d/twinserve.exports"
_HEADER = "# Twinserve: weights for the workers, over the rail only.\n"


def plan(nodes: Sequence[Mapping[str, Any]], addresses: Sequence[str], mode: str) -> list[dict[str, Any]]:
    """One plan a node, by rank: the head's `exports` and a worker's `mount`, each None where there is none.

    `addresses` are those on the main rail, by rank; `mode` is the setting `worker_weights`. With `copy` the
    plans are empty. `due`: the node differs from its plan, and may be changed now; `held`: not under the rank
    that reads from it. `fault`: why nothing can be exported at all.
    """
    plans: list[dict[str, Any]] = [{"exports": None, "mount": None, "fault": ""} for _ in nodes]
    if mode == "nfs":
        source = nodes[0]["hf"]["hub"]
        lines = [_export(source, address, nodes[0]["user"]) for address in addresses[1:]]
        plans[0]["exports"] = _HEADER + "".join(f"{one}\n" for one in lines)
        for one in plans[1:]:
            one["mount"] = f"{addresses[0]}:{source}"
        if not all(_is_address(one) for one in addresses):
            # A name or nothing would export to whoever has it, or to all.
            plans[0]["fault"] = "no client address for the NFS export: run playbooks/fabric.yml first"
    used = any(_reads_from_us(node) for node in nodes)
    for one, node in zip(plans, nodes, strict=True):
        there = node.get("nfs") or {}
        found = [there.get("exports"), there.get("source"), there.get("at_boot")]
        differs = found != [one["exports"], one["mount"], one["mount"]]
        # What a rank reads from is not taken away under it; one more export hurts nobody.
        one["held"] = differs and used and one["exports"] is None
        one["due"] = differs and not one["held"]
    return plans


def _is_address(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _reads_from_us(node: Mapping[str, Any]) -> bool:
    """Whether the rank that runs on this node has the mount."""
    mounts = (node.get("rank_plan") or {}).get("mounts") or []
    return node_runs(node, "twinserve-rank.service") and any(one["source"] == HOME for one in mounts)


def rail_addresses(plans: Iterable[Mapping[str, Any]]) -> list[str]:
    """Each node's address on the main rail, from the plans of the link; there may be none yet."""
    ports = (plan["ports"] for plan in plans)
    return [str(some[0]["address"]).split("/")[0] if some else "rail 0" for some in ports]


def _export(source: str, address: str, user: Mapping[str, Any]) -> str:
    options = f"ro,sync,subtree_check,all_squash,anonuid={user['uid']},anongid={user['gid']}"
    # A space would end the path.
    return f"{source.replace(' ', chr(92) + '040')} {address}({options})"


def faults(node: Mapping[str, Any], settings: Mapping[str, Any], is_head: bool) -> list[str]:
    """Why this node cannot give or take weights over NFS, and caches that would end up there."""
    found = []
    nfs = node.get("nfs") or {}
    if is_head and not nfs.get("server"):
        found.append(
            "has no NFS server: apt install nfs-kernel-server (kernel module nfsd), or worker_weights: copy"
        )
    if not is_head and not nfs.get("client"):
        found.append(
            "cannot mount NFS: apt install nfs-common (kernel module nfsv4), or worker_weights: copy"
        )
    if not is_head and inside(str(node.get("kernel_cache") or ""), HOME):
        found.append("kernel_cache is inside the NFS weights mount")
    for variable, value in (settings.get("engine_env") or {}).items():
        if not is_head and inside(str(value), HOME):
            found.append(f"engine_env {variable} is inside the NFS weights mount")
    return found


def wider(node: Mapping[str, Any]) -> list[str]:
    """Exports of others that give away more of the head's cache than ours: a folder above, or the same."""
    hub = str((node.get("hf") or {}).get("hub") or "")
    return [
        f"{one['file']} gives away more than the weights: {one['line']}"
        for one in (node.get("nfs") or {}).get("others") or []
        if inside(hub, shlex.split(one["line"].replace(chr(92) + "040", chr(92) + " "))[0])
    ]


def inside(path: str, folder: str) -> bool:
    """Whether `path` is the folder or below it."""
    return path.startswith("/") and PurePosixPath(os.path.normpath(path)).is_relative_to(folder)


def unreadable(snapshot: Path, files: Iterable[str]) -> list[str]:
    """Files of which not one byte can be read, with what to do (M-19): being listed says nothing."""
    found = []
    for name in files:
        path = snapshot / name
        try:
            with path.open("rb", buffering=0) as stream:
                stream.read(1)
        except PermissionError:
            mode = stat.S_IMODE(path.stat().st_mode)
            found.append(
                f"worker cannot read {name} over NFS (mode {mode:04o}, root_squash): relax the mode or set "
                "all_squash to the owner"
            )
    return found
