"""Runs a machine under QEMU: its command line, its power, its cables."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from twinlab.errors import LabError

from .base import Base
from .machines import WAY_IN, Machine

_PROGRAM = "qemu-system-x86_64"
_MEMORY_MIB = 1536
_KERNEL = (
    "root=/dev/vda rw console=ttyS0 quiet loglevel=4 systemd.show_status=0"
    # What follows shortens the boot of an emulated processor by half.
    " mitigations=off nokaslr audit=0 apparmor=0 selinux=0 nowatchdog tsc=reliable random.trust_cpu=on"
)


def argv(machine: Machine, peer: Machine, base: Base) -> list[str]:
    """The command line. Nothing of the machine is seen by the host but the port of its sshd."""
    words = [_PROGRAM, "-name", machine.name, "-machine", "q35", "-accel", "tcg"]
    # Time by instructions, one a nanosecond: on a busy host its clock goes slower, and nothing times out.
    words += ["-icount", "shift=0,align=off,sleep=on"]
    # Without AVX the C library takes its SSE routines, which are emulated far faster.
    words += ["-cpu", "max,la57=off,avx=off,avx2=off", "-smp", "1", "-m", str(_MEMORY_MIB)]
    words += ["-nodefaults", "-display", "none", "-serial", f"file:{machine.console}"]
    words += ["-monitor", f"unix:{machine.monitor},server=on,wait=off", "-pidfile", str(machine.pid)]
    words += ["-kernel", str(base.kernel), "-initrd", str(machine.initial), "-append", _KERNEL]
    words += ["-drive", f"file={base.disk},format=raw,if=virtio,snapshot=on", "-device", "virtio-rng-pci"]
    words += [*_way_in(machine), "-device", f"virtio-net-pci,netdev=controller,mac={machine.mac(3)}"]
    words += [*_cable(machine, peer, 0), "-device", f"virtio-net-pci,netdev=cable0,mac={machine.mac(0)}"]
    for rail in (1, 2):
        words += _cable(machine, peer, rail)
        words += [
            "-device",
            f"virtio-net-pci,netdev=cable{rail},id=port{rail},mac={machine.mac(rail)},host_mtu=9000",
        ]
    return words


def _cable(machine: Machine, peer: Machine, port: int) -> list[str]:
    """A UDP port at each end. As on a wire, what an end does not take is lost, and holds nobody up."""
    ends = ",".join(
        f"{end}.type=inet,{end}.host=127.0.0.1,{end}.port={one.cables[port]}"
        for end, one in (("local", machine), ("remote", peer))
    )
    return ["-netdev", f"dgram,id=cable{port},{ends}"]


def _way_in(machine: Machine) -> list[str]:
    """The controller's port that leads to the machine's sshd, and to nothing else."""
    network = f"net={WAY_IN}/24,host={WAY_IN.rpartition('.')[0]}.1,restrict=on"
    return ["-netdev", f"user,id=controller,{network},hostfwd=tcp:127.0.0.1:{machine.ssh_port}-{WAY_IN}:22"]


def start(machine: Machine, peer: Machine, base: Base) -> None:
    """Switch on.  The controller's other work goes first."""
    with (machine.folder / "qemu.log").open("w") as log:
        subprocess.Popen(
            ["nice", "-n", "10", *argv(machine, peer, base)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(machine.folder)},  # where the disk's changes go
        )


def is_on(machine: Machine) -> bool:
    """Whether its QEMU runs."""
    pid = _pid(machine)
    return pid is not None and Path(f"/proc/{pid}").exists()


def _pid(machine: Machine) -> int | None:
    """The id of its QEMU, unless that number is now another program's."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        pid = int(machine.pid.read_text())
        if str(machine.pid).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return None


def cut_power(machine: Machine) -> None:
    """Switch off at once; nothing to do when it is off."""
    if pid := _pid(machine):
        os.kill(pid, signal.SIGTERM)
        for _ in range(100):
            if not is_on(machine):
                return
            time.sleep(0.1)
        raise LabError(f"{machine.name}: QEMU (pid {pid}) does not end")


def command(machine: Machine, words: Sequence[str]) -> None:
    """Give QEMU one of its own commands, such as `set_link port1 off`."""
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.settimeout(30)
        monitor.connect(str(machine.monitor))
        _read_prompt(monitor)
        monitor.sendall((" ".join(words) + "\n").encode())
        _read_prompt(monitor)


def _read_prompt(monitor: socket.socket) -> None:
    said = b""
    while not said.endswith(b"(qemu) "):
        said += monitor.recv(4096)
