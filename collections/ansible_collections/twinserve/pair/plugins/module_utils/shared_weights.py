"""Weights that a worker reads from the head over NFS instead of having a copy: exports, mounts, checks.

The head exports its cache read-only, to the workers' rail addresses and nobody else, and lets every reader be
its owner: the payloads may be private to him (mode 0400), and root in a rank's container is nobody to NFS.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

MOUNT = "/var/lib/twinserve/weights"
EXPORTS = "/etc/exports.d/twinserve.exports"
OPTIONS = "ro,nfsvers=4.2,nconnect=8,hard,noatime"
# The worker's mount must not keep it from booting while the head is off.
BOOT = "nofail,_netdev,x-systemd.mount-timeout=30"


def plan(
    nodes: Sequence[Mapping[str, Any]], addresses: Sequence[str], snapshots: Iterable[Mapping[str, str]] = ()
) -> list[dict[str, Any]]:
    """One plan a node, by rank: `exports` (the head's file) or `mount` (a worker's), each None elsewhere.

    `addresses` are those on the main rail, by rank.
    """
    head, source = nodes[0], nodes[0]["hf"]["home"]
    lines = [_export(source, address, head["user"]) for address in addresses[1:]]
    text = "# Twinserve: weights for the workers, over the rail only.\n" + "".join(
        f"{one}\n" for one in lines
    )
    plans: list[dict[str, Any]] = [{"exports": text, "mount": None}]
    for _ in nodes[1:]:
        mount = {
            "src": f"{addresses[0]}:{source}",
            "path": MOUNT,
            "opts": f"{OPTIONS},{BOOT}",
            "fstype": "nfs4",
        }
        plans.append({"exports": None, "mount": mount})
    return plans


def _export(source: str, address: str, user: Mapping[str, Any]) -> str:
    options = f"ro,sync,no_subtree_check,all_squash,anonuid={user['uid']},anongid={user['gid']}"
    # A space would end the path.
    return f"{source.replace(' ', chr(92) + '040')} {address}({options})"


def faults(node: Mapping[str, Any], name: str, settings: Mapping[str, Any], is_head: bool) -> list[str]:
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
    if not is_head and inside(str(node.get("kernel_cache") or ""), MOUNT):
        found.append("kernel_cache is inside the NFS weights mount")
    for variable, value in (settings.get("engine_env") or {}).items():
        if not is_head and inside(str(value), MOUNT):
            found.append(f"engine_env {variable} is inside the NFS weights mount")
    return [f"{name}: {one}" for one in found]


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
