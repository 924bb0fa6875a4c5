"""What a node can do with NFS, and what of ours is there: programs, kernel modules, the export, the mount."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .shared_weights import EXPORTS, MOUNT
from .shell import CommandError, run

_PATIENCE = 60.0  # seconds, more than systemd gives a mount
_SBIN = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def read_nfs(root: Path = Path("/")) -> dict[str, Any]:
    """`server`, `client`: can it be one? `exports`: our file; `others`: what others export.

    `source`: what is mounted for weights; `at_boot`: what fstab says; `waits`: systemd mounts it on use.
    """
    exports = root / EXPORTS.lstrip("/")
    mounts = (root / "proc/self/mounts").read_text()
    return {
        "server": _program("exportfs") and _kernel(root, ("nfsd",)),
        "client": _program("mount.nfs") and _kernel(root, ("nfs4", "nfsv4")),
        "exports": exports.read_text() if exports.is_file() else None,
        "others": _others(root),
        "source": mounted(mounts, MOUNT),
        "at_boot": _at_boot(root),
        "waits": f" {MOUNT} autofs " in mounts,
    }


def reach() -> None:
    """Have the weights mounted if systemd waits to. Raises CommandError when the head does not answer.

    Whoever looks at such a mount is blocked for as long as its server is gone: a program can be ended.
    """
    if f" {MOUNT} " not in Path("/proc/self/mounts").read_text():
        return
    try:
        run(["stat", "--file-system", MOUNT], timeout=_PATIENCE)
    except CommandError as error:
        source = _at_boot(Path("/")) or "the head"
        raise CommandError(
            f"{source} does not give the weights over NFS ({error}): switch the head on, start nfs-server "
            f"there, or mend the rail; when that address is no more, umount --force --lazy {MOUNT}"
        ) from error


def _at_boot(root: Path) -> str | None:
    fstab = root / "etc/fstab"
    return mounted(fstab.read_text(), MOUNT) if fstab.is_file() else None


def mounted(mounts: str, path: str) -> str | None:
    """The source of what is mounted at `path` by a list like fstab, not what waits to mount it."""
    found = None
    for line in mounts.splitlines():
        words = line.split()[:3]
        if words[1:2] == [path] and words[2] != "autofs" and not words[0].startswith("#"):
            found = words[0].replace(chr(92) + "040", " ")
    return found


def _others(root: Path) -> list[dict[str, str]]:
    """What others export, line by line."""
    files = [root / "etc/exports", *sorted((root / "etc/exports.d").glob("*.exports"))]
    ours = root / EXPORTS.lstrip("/")
    return [
        {"file": f"/{path.relative_to(root)}", "line": line.strip()}
        for path in files
        if path.is_file() and path != ours
        for line in path.read_text().splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]


def _program(name: str) -> bool:
    return shutil.which(name, path=_SBIN) is not None


def _kernel(root: Path, names: Iterable[str]) -> bool:
    """Whether the running kernel has one of these, built in, loaded, or as a module on disk."""
    known = (root / "proc/filesystems").read_text().split()
    folder = root / "lib/modules" / platform.release()
    files = [folder / "modules.dep", folder / "modules.builtin"]
    listed = "".join(path.read_text() for path in files if path.is_file())
    return any(name in known or f"/{name}.ko" in listed for name in names)
