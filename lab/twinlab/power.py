"""Switches hosts on and off, and runs commands in them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from . import cgroups, disk, processes
from .command import attempt
from .errors import LabError
from .files import write_whole
from .layout import Host, Lab
from .machine import quirks, simulator

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_BOOT_TIMEOUT = 180.0  # seconds; both boot in a few, but others may need the processors
_SHUTDOWN_TIMEOUT = 40.0


def supervisor_name(host: Host) -> str:
    """The name of a host's supervisor among the lab's processes."""
    return f"host-{host.letter}"


def init_pid(host: Host) -> int | None:
    """The pid of a host's systemd on the controller, None while it is off."""
    return processes.read_pid(host.init_pid)


def is_on(lab: Lab, host: Host) -> bool:
    """Whether a host has power and runs."""
    return processes.alive(lab, supervisor_name(host)) and init_pid(host) is not None


def switch_on(lab: Lab, host: Host, base: Path) -> None:
    """Start a host that is off; `wait_until_running` says when it is there."""
    cgroups.create(host.cgroup)
    cgroups.kill(host.cgroup)
    for name in ("engine", "ib", "pci", "netdev"):
        (host.folder / name).mkdir(parents=True, exist_ok=True)
    quirks.write(lab, quirks.read(lab).after_power_cycle(host))
    disk.prepare(host)
    (host.engine / ".gpus.json").write_text(json.dumps(gpus(host), indent=2) + "\n")
    (host.folder / "product_name").write_text(f"{host.hardware.product}\n")
    if not host.memory_setting.exists():
        set_memory(host, host.hardware.memory_available_gib)
    host.init_pid.unlink(missing_ok=True)
    processes.spawn(
        lab, supervisor_name(host), processes.python("supervisor", lab.name, host.name, str(base))
    )


def gpus(host: Host) -> dict[str, Any]:
    """What the host's nvidia-smi says, in the names of its fields; each GPU has a UUID of its own."""
    hardware = host.hardware
    listed = []
    for index, gpu in enumerate(hardware.gpus):
        seed = host.name if index == hardware.engine_gpu else f"{host.name}-{index}"
        fields = {
            "index": str(index),
            "name": gpu.name,
            "uuid": f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, seed)}",
            "compute_cap": gpu.compute_cap,
            "pci.bus_id": gpu.bus,
            "driver_version": hardware.driver,
            "cuda": hardware.cuda,
        }
        listed.append(fields | ({"memory.total": str(gpu.memory_mib)} if gpu.memory_mib else {}))
    return {"gpus": listed, "engine": hardware.engine_gpu}


def set_memory(host: Host, gib: float, files_gib: float | None = None) -> None:
    """Set the GiB available while no engine is loaded; the simulator subtracts what an engine holds.

    `files_gib` of them are what the kernel keeps of files, whatever it is told to drop.
    """
    write_whole(host.memory_setting, f"{gib:g}\n" if files_gib is None else f"{gib:g} {files_gib:g}\n")
    simulator.update_memory(host, Path("/proc/meminfo").read_text())


def set_bandwidth(host: Host, gbits: float | None) -> None:
    """Set what the host's ib_write_bw sends on a rail, in Gb/s; None for what such a machine does."""
    setting = host.engine / "bandwidth"
    if gbits is None:
        setting.unlink(missing_ok=True)
    else:
        setting.write_text(f"{gbits:g}\n")


def set_rdma(host: Host, is_on: bool) -> None:
    """Give a host its /dev/infiniband, or put it aside; a reboot changes nothing in that."""
    if is_on:
        host.rdma_off.unlink(missing_ok=True)
    else:
        host.rdma_off.touch()
    shown, aside = "/dev/infiniband", "/dev/.infiniband"
    here, there = (aside, shown) if is_on else (shown, aside)
    done = run_in(host, ["sh", "-c", f"[ ! -e {here} ] || mv {here} {there}"])
    if done.returncode != 0:
        raise LabError(f"{host.name}: {done.stderr.strip()}")


def cut(lab: Lab, host: Host) -> None:
    """Take the power away, at once."""
    pid = init_pid(host)
    if pid is None:
        raise LabError(f"{host.name} is off")
    os.kill(pid, signal.SIGKILL)
    _wait_off(lab, host, _SHUTDOWN_TIMEOUT)


def shut_down(lab: Lab, hosts: Iterable[Host]) -> None:
    """Switch hosts off in good order, together; what does not end in time loses its power."""
    running = [host for host in hosts if init_pid(host) is not None]
    for host in running:
        _signal_init(host, signal.SIGRTMIN + 4)  # systemd: start poweroff.target
    end = time.monotonic() + _SHUTDOWN_TIMEOUT
    for host in running:
        _wait_off(lab, host, end - time.monotonic())
    for host in hosts:
        processes.stop(lab, supervisor_name(host))
        cgroups.create(host.cgroup)
        cgroups.kill(host.cgroup)
        host.init_pid.unlink(missing_ok=True)


def reboot(host: Host) -> None:
    """Reboot a running host and wait until its systemd is a new one."""
    before = init_pid(host)
    if before is None:
        raise LabError(f"{host.name} is off")
    _signal_init(host, signal.SIGRTMIN + 5)  # systemd: start reboot.target
    end = time.monotonic() + _SHUTDOWN_TIMEOUT
    while init_pid(host) in (before, None):
        if time.monotonic() > end:
            raise LabError(
                f"{host.name} did not reboot in {_SHUTDOWN_TIMEOUT:.0f} s: see {host.folder}/console.log"
            )
        time.sleep(0.1)


def _signal_init(host: Host, number: int) -> None:
    pid = init_pid(host)
    if pid is not None:
        os.kill(pid, number)


def _wait_off(lab: Lab, host: Host, timeout: float) -> None:
    end = time.monotonic() + timeout
    while processes.alive(lab, supervisor_name(host)):
        if time.monotonic() > end:
            processes.stop(lab, supervisor_name(host), timeout=0)
        time.sleep(0.05)


def command_in(host: Host, argv: Sequence[str]) -> list[str]:
    """The command line that runs another as root inside a host.  Raises LabError when it is off."""
    pid = init_pid(host)
    if pid is None:
        raise LabError(f"{host.name} is off: `lab power-on {host.name}`")
    return [
        "nsenter",
        f"--target={pid}",
        "--mount",
        "--uts",
        "--ipc",
        "--net",
        "--pid",
        "--cgroup",
        "env",
        "-i",
        f"PATH={_PATH}",
        "HOME=/root",
        f"TERM={os.environ.get('TERM', 'dumb')}",
        *argv,
    ]


def run_in(host: Host, argv: Sequence[str], stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command as root inside a host."""
    return attempt(command_in(host, argv), stdin)


def wait_until_running(lab: Lab, host: Host) -> None:
    """Wait until the host's systemd has finished booting and Docker answers.  Raises LabError."""
    end = time.monotonic() + _BOOT_TIMEOUT
    state = "no init"
    while time.monotonic() < end:
        if not processes.alive(lab, supervisor_name(host)):
            raise LabError(
                f"{host.name} went off while booting: see {host.folder}/console.log; "
                f"{processes.last_line(lab, supervisor_name(host))}"
            )
        if init_pid(host) is not None:
            state = run_in(host, ["systemctl", "is-system-running", "--wait"]).stdout.strip()
            if state == "degraded":
                failed = run_in(host, ["systemctl", "--failed", "--plain", "--no-legend"]).stdout.split("\n")[
                    0
                ]
                raise LabError(f"{host.name} is up, but: {failed.strip()}")
            if state == "running" and run_in(host, ["docker", "info"]).returncode == 0:
                return
        time.sleep(0.1)
    raise LabError(
        f"{host.name} is not up after {_BOOT_TIMEOUT:.0f} s ({state}): see {host.folder}/console.log"
    )
