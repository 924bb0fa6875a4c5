"""What a node can do with NFS, and what of ours is there: programs, kernel modules, the export, the mount."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .shared_weights import EXPORTS, MOUNT

_SBIN = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def read_nfs(root: Path = Path("/")) -> dict[str, Any]:
    """`server`, `client`: can it be one? `exports`: our file; `source`: what is mounted for weights."""
    exports = root / EXPORTS.lstrip("/")
    return {
        "server": _program("exportfs") and _kernel(root, ("nfsd",)),
        "client": _program("mount.nfs") and _kernel(root, ("nfs4", "nfsv4")),
        "exports": exports.read_text() if exports.is_file() else None,
        "source": mounted((root / "proc/self/mounts").read_text(), MOUNT),
    }


def mounted(mounts: str, path: str) -> str | None:
    """The source of the file system that is mounted at `path`, the topmost; not what waits to mount it."""
    found = None
    for line in mounts.splitlines():
        source, place, kind = line.split(" ")[:3]
        if place == path and kind != "autofs":
            found = source.replace(chr(92) + "040", " ")
    return found


def _program(name: str) -> bool:
    return shutil.which(name, path=_SBIN) is not None


def _kernel(root: Path, names: Iterable[str]) -> bool:
    """Whether the running kernel has one of these, built in, loaded, or as a module on disk."""
    known = (root / "proc/filesystems").read_text().split()
    folder = root / "lib/modules" / platform.release()
    files = [folder / "modules.dep", folder / "modules.builtin"]
    listed = "".join(path.read_text() for path in files if path.is_file())
    return any(name in known or f"/{name}.ko" in listed for name in names)
