"""The commands of a copy: ssh bound to a rail, and rsync to list, to send and to link."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from ..hf_blobs import PARTIAL
from ..ssh_client import ssh_options
from .plan import Plan, Way

# With AES instructions it moves about half as much again as ssh's default cipher.
_CIPHER = "aes128-gcm@openssh.com"
# A rail that carries nothing for 15 s is given up; a worker that hears nothing for five minutes ends.
_MANNERS = {"ConnectTimeout": "10", "ServerAliveInterval": "5", "ServerAliveCountMax": "3"}
_TIMEOUT = 300
# A blob is named by its content, so one of the right size is the right one, whoever brought it and when.
_COMMON = ["rsync", "--archive", "--no-owner", "--no-group", "--size-only", f"--timeout={_TIMEOUT}"]
_NAMES = ["--from0", "--files-from=-"]


def ssh(plan: Plan, way: Way) -> list[str]:
    """The connection to the worker by this way; only keys and hosts of ours take part."""
    bound = {"BindAddress": way.source, "BindInterface": way.netdev}
    values = {**_MANNERS, **{name: value for name, value in bound.items() if value}}
    words = [word for name, value in values.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", *ssh_options(plan.key, plan.known_hosts), *words, "-p", str(way.port), "-c", _CIPHER]


def knock(plan: Plan, way: Way) -> list[str]:
    """Ask for what the key is not for."""
    return [*ssh(plan, way), f"{plan.user}@{way.address}", "true"]


def look(plan: Plan, way: Way) -> list[str]:
    """Say which files the worker lacks, and send nothing."""
    told = ["--dry-run", "--8-bit-output", "--out-format=%i %n"]
    return [*_COMMON, *told, *plan.options, *_ends(plan, way)]


def make_room(plan: Plan, way: Way, folder: str) -> list[str]:
    """Lay down the empty files of `folder` where new ones will grow, keeping what is there.

    rsync goes on in such a file in place. Without it, it would write to one with a random name, which is lost
    and left behind when the worker loses power.
    """
    shell = f"--rsh={' '.join(ssh(plan, way))}"
    words = ["rsync", "--recursive", "--ignore-existing", f"--timeout={_TIMEOUT}", shell]
    return [*words, f"{folder}/", f"{plan.user}@{way.address}:./"]


def rooms(plan: Plan, name: str) -> tuple[str, str]:
    """Where a file may grow, from the root of the cache: what the worker's rrsync makes of it decides."""
    place = PurePath(plan.target, name)
    return f"{PARTIAL}/{place.name}", f"{place.parent}/{PARTIAL}/{place.name}"


def send(plan: Plan, way: Way) -> list[str]:
    """Send files. Each grows in the folder for partial ones and is renamed when it is whole and right."""
    # Given from the root of the worker's cache, which is all that the copy's key can write: newer rrsync
    # takes every path for one from there, some older ones for one beside each file.
    words = [f"--partial-dir=/{PARTIAL}", "--info=progress2", "--no-human-readable"]
    return [*_COMMON, *words, *plan.options, *_ends(plan, way)]


def finish(plan: Plan, way: Way) -> list[str]:
    """Send what comes last: links stay links, all hops of them."""
    return [*_COMMON, *plan.options, *_ends(plan, way)]


def _ends(plan: Plan, way: Way) -> Sequence[str]:
    target = f"{plan.user}@{way.address}:{plan.target}"
    return [f"--rsh={' '.join(ssh(plan, way))}", *_NAMES, f"{plan.source}/", target]
