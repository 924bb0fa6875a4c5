"""What the lab needs from the machine, found out before anything is changed."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Iterable
from pathlib import Path

from . import cgroups, disk
from .command import attempt, run
from .errors import Refusal
from .layout import APT_PORT, HUB_PORT, REGISTRY_PORT
from .progress import Progress

# program -> Debian package
_PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "docker-registry": "docker-registry",
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mkfs.ext4": "e2fsprogs",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sysctl": "procps",
}
_GIB_FOR_NEW_LAB = 6.0
_GIB_TO_RUN = 2.0
_IP_FREEBIND = 15  # of linux/in.h: bind to an address that is not there yet


def machine_reason() -> str | None:
    """Why this machine and user cannot run a lab, None if they can."""
    if sys.platform != "linux":
        return f"needs Linux (this is {sys.platform})"
    if os.geteuid() != 0:
        return "needs root: run it with sudo"
    if shutil.which("apt-get") is None:
        return "needs apt, to build the hosts from packages"
    if cgroups.unified_root() is None:
        return "needs a cgroup v2 hierarchy under /sys/fs/cgroup"
    tried = attempt(
        ["unshare", "--mount", "--net", "--pid", "--cgroup", "--fork", "mount", "-t", "tmpfs", "lab", "/mnt"]
    )
    if tried.returncode != 0:
        return f"may not make namespaces here: {tried.stderr.strip()}"
    return None


def folder_reason(root: Path, base_is_built: bool) -> str | None:
    """Why labs cannot be kept in a folder, None if they can."""
    root.mkdir(parents=True, exist_ok=True)
    needed = _GIB_TO_RUN if base_is_built else _GIB_FOR_NEW_LAB
    free = disk.free_real_gib(root)
    if free < needed:
        return f"needs {needed:g} GiB free in {root}, which has {free:.1f}"
    script = (
        'cd "$1" && mkdir -p .try/low .try/up .try/work .try/all && '
        "mount -t overlay overlay -o lowerdir=.try/low,upperdir=.try/up,workdir=.try/work .try/all"
    )
    tried = attempt(["unshare", "--mount", "sh", "-c", script, "sh", str(root)])
    shutil.rmtree(root / ".try", ignore_errors=True)
    if tried.returncode != 0:
        return f"overlayfs does not work in {root} (set TWINSERVE_LAB to a folder on a local disk)"
    return None


def port_reason(address: str, ports: Iterable[int] = (APT_PORT, REGISTRY_PORT, HUB_PORT)) -> str | None:
    """Why the lab's services cannot listen on their address, None if they can."""
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
            try:
                probe.bind((address, port))
            except OSError as error:
                return f"port {port} on {address} is taken ({error.strerror}): `ss -ltnp` shows by whom"
    return None


def refuse_if(reason: str | None) -> None:
    """Raise Refusal with the reason, if there is one."""
    if reason is not None:
        raise Refusal(reason)


def missing_packages() -> list[str]:
    """The packages that the lab needs and this machine has not."""
    return sorted({package for program, package in _PROGRAMS.items() if shutil.which(program) is None})


def install(progress: Progress) -> None:
    """Install what is missing.  Raises Refusal when apt cannot."""
    packages = missing_packages()
    if not packages:
        return
    progress.say(f"installing {', '.join(packages)}")
    command = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages]
    environment = ["env", "DEBIAN_FRONTEND=noninteractive"]
    done = attempt([*environment, *command])
    if done.returncode != 0:
        run(["apt-get", "update", "-q"])
        done = attempt([*environment, *command])
    if done.returncode != 0:
        raise Refusal(f"cannot install {', '.join(packages)}: {done.stderr.strip().splitlines()[-1]}")
    if "docker-registry" in packages and Path("/run/systemd/system").is_dir():
        # The package starts a registry of its own on our port; the lab runs its own instead.
        run(["systemctl", "--quiet", "disable", "--now", "docker-registry"])
