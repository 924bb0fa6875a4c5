"""A host's disk: a sparse file with a filesystem, so that the host's free space is what a test sets.

Free space is taken away by a ballast file that has blocks but no content, outside of what the host sees.
"""

from __future__ import annotations

from pathlib import Path

from .command import attempt, run
from .errors import LabError
from .hardware import DISK_GIB
from .layout import Host

_GIB = 1024**3


def loop_devices_work() -> bool:
    """Whether this machine lends us a loop device."""
    return attempt(["losetup", "--find"]).returncode == 0


def prepare(host: Host) -> None:
    """Make the disk of a host that is off, unless it is there; without loop devices it is a plain folder."""
    for name in ("disk", "root"):
        (host.folder / name).mkdir(parents=True, exist_ok=True)
    if host.disk_image.exists() or not loop_devices_work():
        return
    unfinished = host.disk_image.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    with unfinished.open("wb") as stream:
        stream.truncate(DISK_GIB * _GIB)
    run(
        [
            "mkfs.ext4",
            "-q",
            "-F",
            "-m",
            "0",
            "-T",
            "largefile",
            "-O",
            "^has_journal",
            "-E",
            "lazy_itable_init=1,nodiscard",
            str(unfinished),
        ]
    )
    unfinished.rename(host.disk_image)


def ballast_bytes(free_now: int, ballast_now: int, wanted_gib: float) -> int:
    """The size that the ballast must have for `wanted_gib` GiB to be free.

    Raises LabError when the disk is too small for that.
    """
    room = free_now + ballast_now
    wanted = round(wanted_gib * _GIB)
    if not 0 <= wanted <= room:
        raise LabError(f"{wanted_gib:g} GiB cannot be free: at most {room / _GIB:.0f}")
    return room - wanted


_SET_BALLAST = """set -eu
mount -o loop,discard,noinit_itable "$1" "$2"
rm -f "$2/ballast"
if [ "$3" -gt 0 ]; then fallocate --length "$3" "$2/ballast"; fi
"""
_MEASURE = """set -eu
mount -o loop,discard,noinit_itable "$1" "$2"
stat --file-system --format='%a %S' "$2"
stat --format=%s "$2/ballast" 2>/dev/null || echo 0
"""


def set_free(host: Host, wanted_gib: float) -> None:
    """Make `df` in a host show this many GiB free.  Raises LabError without a disk image."""
    if not host.disk_image.exists():
        raise LabError("this machine has no loop devices, so the free space of a host cannot be set")
    free, block, ballast = _in_own_mounts(host, _MEASURE).split()
    _in_own_mounts(host, _SET_BALLAST, str(ballast_bytes(int(free) * int(block), int(ballast), wanted_gib)))


def _in_own_mounts(host: Host, script: str, *arguments: str) -> str:
    """Run a script that mounts the disk a second time where only the script sees it."""
    return run(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
            str(host.disk_image),
            str(host.folder / "disk"),
            *arguments,
        ]
    )


def free_real_gib(folder: Path) -> float:
    """GiB free on the controller's own disk."""
    free, block = run(["stat", "--file-system", "--format=%a %S", str(folder)]).split()
    return int(free) * int(block) / _GIB
