"""Control groups of a lab: each host is one, its services are one; killing a group leaves nobody behind.

Only the unified (v2) hierarchy gets groups of ours.  On a hybrid machine processes are moved to the top of
each v1 hierarchy, so that they do not end with the group of the shell that started them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import LabError

MOUNT = Path("/sys/fs/cgroup")


def unified_root(mount: Path = MOUNT) -> Path | None:
    """The top of the v2 hierarchy: the mount itself, or `unified` in it on a hybrid machine."""
    for root in (mount, mount / "unified"):
        if (root / "cgroup.controllers").exists():
            return root
    return None


def legacy_roots(mount: Path = MOUNT) -> list[Path]:
    """The tops of the v1 hierarchies, each once."""
    if (mount / "cgroup.controllers").exists() or not mount.is_dir():
        return []
    return sorted(
        folder
        for folder in mount.iterdir()
        if folder.name != "unified" and not folder.is_symlink() and (folder / "cgroup.procs").exists()
    )


def _root() -> Path:
    root = unified_root()
    if root is None:
        raise LabError("no unified cgroup hierarchy is mounted under /sys/fs/cgroup")
    return root


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Keep other labs from the groups that all labs share, which each makes anew and the last removes."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def enable_controllers(folder: Path) -> None:
    """Hand the controllers of a group to its children; on a hybrid machine there are none."""
    offered = (folder / "cgroup.controllers").read_text().split()
    enabled = (folder / "cgroup.subtree_control").read_text().split()
    for name in offered:
        if name in enabled:
            continue
        try:
            (folder / "cgroup.subtree_control").write_text(f"+{name}")
        except OSError:  # not every machine can share each; the hosts then do without its limits
            continue


def create(group: str) -> None:
    """Make a group and its parents."""
    folder = _root()
    with _alone(folder):
        for part in Path(group).parts:
            enable_controllers(folder)
            folder = folder / part
            folder.mkdir(exist_ok=True)


def add(group: str, pid: int) -> None:
    """Move a process into a group, and out of whatever v1 group it was in."""
    (_root() / group / "cgroup.procs").write_text(str(pid))
    for root in legacy_roots():
        (root / "cgroup.procs").write_text(str(pid))


def pids(group: str) -> list[int]:
    """Every process in a group and below it."""
    found: list[int] = []
    for folder, _, _ in os.walk(_root() / group):  # unlike rglob it does not mind groups that go meanwhile
        try:
            found += [int(word) for word in (Path(folder) / "cgroup.procs").read_text().split()]
        except OSError:  # gone, or a group whose processes are listed elsewhere
            continue
    return found


def kill(group: str, timeout: float = 20.0) -> None:
    """Kill every process in a group and wait until it is empty."""
    end = time.monotonic() + timeout
    while remaining := pids(group):
        for pid in remaining:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > end:
            raise LabError(f"processes of {group} do not end: {remaining[:5]}")
        time.sleep(0.05)


def _remove_one(folder: Path, timeout: float = 10.0) -> None:
    """Remove a group that has no process: the kernel calls it busy until it has buried the last one."""
    end = time.monotonic() + timeout
    while True:
        try:
            folder.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return


def remove(group: str) -> None:
    """Remove an empty group with all below it, and its parents when nothing else is in them."""
    top = _root()
    folder = top / group
    for path, _, _ in os.walk(folder, topdown=False):
        _remove_one(Path(path))
    with _alone(top):
        for parent in folder.relative_to(top).parents:
            if parent == Path() or not (top / parent).is_dir():
                continue
            if any(child.is_dir() for child in (top / parent).iterdir()):
                return
            (top / parent).rmdir()
