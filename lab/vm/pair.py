"""Brings the two machines up, waits for them, and takes them down."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from twinlab import apt_sources
from twinlab.command import attempt, run
from twinlab.errors import LabError, Refusal
from twinlab.progress import Progress

from . import base, inventory, machines, qemu
from .cpio import archive
from .machines import Machine

# program -> Debian package
_PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "mkfs.ext4": "e2fsprogs",
    "ssh": "openssh-client",
}
_GIB_FREE = 5
_BOOT_LIMIT = 900  # seconds


def folder() -> Path:
    """Where everything is kept."""
    return Path(__file__).resolve().parents[2] / "build/vm"


def _refuse() -> None:
    """Raise Refusal where the machines cannot run."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Refusal(f"needs Linux on x86_64 (this is {sys.platform} on {platform.machine()})")
    if os.geteuid() != 0:
        raise Refusal("needs root, to build the machines' disk: run it with sudo")
    if shutil.which("apt-get") is None:
        raise Refusal("needs apt, to build the machines from packages")
    free = shutil.disk_usage(folder()).free / 2**30
    if free < _GIB_FREE:
        raise Refusal(f"needs {_GIB_FREE} GiB free in {folder()}, which has {free:.1f}")


def _install(progress: Progress) -> None:
    packages = sorted({package for program, package in _PROGRAMS.items() if shutil.which(program) is None})
    if not packages:
        return
    progress.say(f"installing {', '.join(packages)}")
    command = [
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "install",
        "-q",
        "-y",
        "--no-install-recommends",
    ]
    if attempt([*command, *packages]).returncode != 0:
        run(["apt-get", "update", "-q"])
        run([*command, *packages])


def known() -> tuple[Machine, Machine]:
    """The machines of the last `up`.  Raises LabError when there was none."""
    try:
        ports = json.loads((folder() / "ports.json").read_text())
    except FileNotFoundError:
        raise LabError("the machines are not up: run `lab/rdma up`") from None
    return machines.pair(folder(), ports)


def up(progress: Progress) -> None:
    """Bring both machines up, fresh; when both run they are left alone."""
    folder().mkdir(parents=True, exist_ok=True)
    _refuse()
    _install(progress)
    built = base.build(folder(), apt_sources.distribution(), progress)
    if (folder() / "ports.json").exists() and all(qemu.is_on(machine) for machine in known()):
        progress.say("the machines are up already")
    else:
        down(progress)
        pair = _prepare(built)
        progress.say("booting both; under emulation that takes one to five minutes")
        for machine, peer in (pair, pair[::-1]):
            qemu.start(machine, peer, built)
    wait(known(), progress)


def _prepare(built: base.Base) -> tuple[Machine, Machine]:
    """Free ports, keys and each machine's own files."""
    ports = _free_ports(2 * 4)
    pair = machines.pair(folder(), ports)
    user_key = machines.make_key(folder() / "user_key")
    for machine in pair:
        shutil.rmtree(machine.folder, ignore_errors=True)
        machine.folder.mkdir()
        machines.make_key(machine.host_key)
        own = archive(machines.own_files(machine, user_key))
        machine.initial.write_bytes(built.initial.read_bytes() + own)
    inventory.write(folder(), pair)
    (folder() / "ports.json").write_text(json.dumps(ports))
    return pair


def _free_ports(count: int) -> list[int]:
    """Different ports that nobody has, neither for TCP nor for UDP."""
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        while len(found) < count:
            tcp = stack.enter_context(socket.socket())
            tcp.bind(("127.0.0.1", 0))
            udp = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
            with contextlib.suppress(OSError):
                udp.bind(tcp.getsockname())
                found.append(int(tcp.getsockname()[1]))
        return found


def wait(pair: Sequence[Machine], progress: Progress) -> None:
    """Wait until both have booted in full.  Raises LabError with what keeps one from it."""
    for machine in pair:
        _wait_for_ssh(machine)
        said = attempt(ssh_argv(machine, ["systemctl", "is-system-running", "--wait"])).stdout.strip()
        if said != "running":
            failed = attempt(ssh_argv(machine, ["systemctl", "--failed", "--plain", "--no-legend"])).stdout
            raise LabError(f"{machine.name} is {said or 'gone'}: {failed.strip()}")
        progress.say(f"{machine.name} runs")


def _wait_for_ssh(machine: Machine) -> None:
    limit = time.monotonic() + _BOOT_LIMIT
    while time.monotonic() < limit:
        if not qemu.is_on(machine) and (machine.folder / "qemu.log").read_text():
            raise LabError(f"{machine.name}: QEMU ended: {(machine.folder / 'qemu.log').read_text().strip()}")
        if attempt(ssh_argv(machine, ["true"])).returncode == 0:
            return
        time.sleep(2)
    raise LabError(f"{machine.name} does not answer after {_BOOT_LIMIT} s: see {machine.console}")


def ssh_argv(machine: Machine, command: Sequence[str]) -> list[str]:
    """The command line that runs a command there as the user, or a shell."""
    return ["ssh", "-F", str(folder() / "ssh_config"), machine.name, *command]


def reboot(machine: Machine, progress: Progress) -> None:
    """Reboot in good order and wait until it has booted."""
    before = run(ssh_argv(machine, ["cat", "/proc/sys/kernel/random/boot_id"]))
    attempt(ssh_argv(machine, ["sudo", "systemctl", "reboot"]))
    limit = time.monotonic() + _BOOT_LIMIT
    while attempt(ssh_argv(machine, ["cat", "/proc/sys/kernel/random/boot_id"])).stdout in ("", before):
        if time.monotonic() > limit:
            raise LabError(f"{machine.name} has not rebooted after {_BOOT_LIMIT} s: see {machine.console}")
        time.sleep(2)
    wait([machine], progress)


def down(progress: Progress, wipe: bool = False) -> None:
    """Switch both off; what was written to their disks is gone. `wipe` removes the base too."""
    if (folder() / "ports.json").exists():
        for machine in known():
            qemu.cut_power(machine)
        (folder() / "ports.json").unlink()
    if wipe:
        shutil.rmtree(folder(), ignore_errors=True)
        progress.say(f"removed {folder()}")
