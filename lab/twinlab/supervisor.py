"""The process that is a host's power supply and console: boots it, again after a reboot, and ends with it.

The host lives only as long as this process; killing it is pulling the plug.
"""

from __future__ import annotations

import ctypes
import os
import pty
import select
import signal
import subprocess
import sys
import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from . import cgroups
from .layout import PACKAGE, Host, Lab, check_name, state_root
from .network import reset_ports
from .ownership import remembered_network
from .processes import write_pid

_PR_SET_PDEATHSIG = 1
_KERNEL_LINE = "BOOT_IMAGE=/boot/vmlinuz-6.14.0-1013-nvidia root=UUID=lab ro console=tty0\n"


def is_reboot(status: int) -> bool:
    """Whether a wait status means that the host rebooted: the kernel ends its init with SIGHUP then.

    A power-off ends it with SIGINT, a power cut with SIGKILL.
    """
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == signal.SIGHUP
    return os.WEXITSTATUS(status) == 128 + signal.SIGHUP


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _boot_command(host: Host, base: Path, tty: str) -> list[str]:
    """What makes the host's namespaces and becomes its init in them; it dies with this process."""
    own = [
        "--mount",
        "--uts",
        "--ipc",
        "--pid",
        "--cgroup",
        "--fork",
        "--kill-child",
        "--propagation",
        "private",
    ]
    network = ["nsenter", f"--net=/run/netns/{host.netns}"]
    boot = [str(PACKAGE / "boot.sh"), host.name, str(host.folder), str(base), tty]
    return [*network, "unshare", *own, *boot]


def _boot(host: Host, base: Path) -> tuple[int, int]:
    """Start the host's namespaces.  Returns the pid of `unshare` and our end of the console."""
    host.boot_id.write_text(f"{uuid.uuid4()}\n")
    (host.folder / "cmdline").write_text(_KERNEL_LINE)
    (host.folder / "class").mkdir(exist_ok=True)
    console, tty = pty.openpty()
    ready, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(console)
        os.close(go)
        os.setsid()
        _die_with_parent()
        os.read(ready, 1)  # wait until we are in the host's group: the cgroup namespace begins there
        argv = _boot_command(host, base, os.ttyname(tty))
        os.execvp(argv[0], argv)
    cgroups.create(host.cgroup)
    cgroups.add(host.cgroup, pid)
    os.close(ready)
    os.write(go, b"x")
    os.close(go)
    os.close(tty)
    return pid, console


def _child_of(pid: int) -> int | None:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if children.exists():
        listed = children.read_text().split()
    else:
        listed = subprocess.run(
            ["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False
        ).stdout.split()
    return int(listed[0]) if listed else None


def _attend(host: Host, pid: int, console: int, log: BinaryIO) -> int:
    """Write the console to the log until the host ends.  Returns its wait status."""
    known = False
    while True:
        readable, _, _ = select.select([console], [], [], 0.2 if known else 0.02)
        if readable:
            try:
                log.write(os.read(console, 65536))
            except OSError:  # nobody has the console open at the moment
                time.sleep(0.1)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        if not known and (child := _child_of(pid)) is not None:
            write_pid(host.init_pid, child)
            known = True


def supervise(host: Host, base: Path) -> None:
    """Be the host's power until it is switched off."""
    with (host.folder / "console.log").open("ab", buffering=0) as log:
        while True:
            reset_ports(host)
            log.write(f"\n[lab] {datetime.now():%F %T} power on\n".encode())
            pid, console = _boot(host, base)
            status = _attend(host, pid, console, log)
            os.close(console)
            host.init_pid.unlink(missing_ok=True)
            cgroups.kill(host.cgroup)
            log.write(f"\n[lab] {datetime.now():%F %T} ended, status {status:#x}\n".encode())
            if not is_reboot(status):
                reset_ports(host)
                return


def main(argv: list[str]) -> int:
    """Arguments: the lab's name, the host's name, the folder of the base."""
    name = check_name(argv[0])
    lab = Lab(name, state_root(), remembered_network(state_root(), name))
    supervise(lab.host(argv[1]), Path(argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
