"""The process that keeps the simulated parts of both hosts true: cables, RDMA devices, memory."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from ..layout import Host, Lab, check_name, state_root
from ..network import ip_json, namespaces
from ..ownership import remembered_network
from . import cables, meminfo, quirks
from .sysfs import PortTree

_TICK = 0.2  # seconds between looks at what sends no events: the engine's memory, the cables' flags


def engine_gib(host: Host) -> float:
    """GiB that the engine of a host holds: what it wrote, and nothing once it is gone.

    It locks the file as long as it lives, so what a killed one left behind does not count.
    """
    try:
        with (host.engine / "gpu.json").open("rb") as file:
            held = float(json.load(file).get("gib", 0))
            if held > 0:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return 0.0
    except BlockingIOError:
        return held
    except (FileNotFoundError, ValueError, AttributeError):  # no engine yet, or it is just writing
        pass
    return 0.0


def update_memory(host: Host, real: str) -> None:
    """Bring a host's /proc/meminfo up to date."""

    def now() -> str:
        try:
            setting, *files = map(float, host.memory_setting.read_text().split())
        except FileNotFoundError:
            setting, files = host.hardware.memory_available_gib, []
        left = meminfo.available(setting, engine_gib(host))
        return meminfo.render(real, host.hardware.memory_total_gib, left, *files)

    meminfo.rewrite(host.meminfo, now)


class Simulator:
    """All of it, for one lab."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._ports = [(host, port) for host in lab.hosts for port in host.hardware.ports]
        self._trees = {(host.name, port.netdev): PortTree(host, port) for host, port in self._ports}
        self._quirks = quirks.read(lab)
        self._boots: dict[str, str] = {}

    def update_links(self) -> None:
        """After anything happened to a network device."""
        cables.settle(self._lab)
        for host in self._lab.hosts:
            links = {link["ifname"]: link for link in ip_json("addr", netns=host.netns)}
            for port in host.hardware.ports:
                if port.netdev in links:
                    quirk = self._quirks.of_port(host, port)
                    self._trees[host.name, port.netdev].update(links[port.netdev], quirk)

    def look(self) -> None:
        """At what sends no events: boots, what was done to the devices, bad cables, memory."""
        booted = self._note_boots()
        wanted = quirks.read(self._lab)
        if booted or wanted != self._quirks or not quirks.is_drawn(self._lab, wanted):
            self._quirks = wanted
            self.update_links()
            self._lab.drawn_quirks.write_text(quirks.render(wanted))
        for host, port in self._ports:
            if self._quirks.of_port(host, port).is_flaky:
                self._trees[host.name, port.netdev].wear()
        self.update_memory()

    def _note_boots(self) -> bool:
        """Begin to count anew on a host that boots."""
        now = {host.name: host.boot_id.read_text() for host in self._lab.hosts if host.boot_id.exists()}
        booted = {name for name, boot in now.items() if self._boots.get(name) != boot}
        for host, port in self._ports:
            if host.name in booted:
                self._trees[host.name, port.netdev].restart()
        self._boots = now
        return bool(booted)

    def update_memory(self) -> None:
        """The memory of both hosts."""
        real = Path("/proc/meminfo").read_text()
        for host in self._lab.hosts:
            update_memory(host, real)


def _watch(simulator: Simulator, monitors: list[subprocess.Popen[bytes]]) -> None:
    pipes = [monitor.stdout for monitor in monitors if monitor.stdout is not None]
    while True:
        ready, _, _ = select.select(pipes, [], [], _TICK)
        for pipe in ready:
            if not os.read(pipe.fileno(), 65536):
                return  # the network is being taken away
        if ready:
            simulator.update_links()
        simulator.look()


def main(argv: list[str]) -> int:
    """Run for the lab of that name until the network goes or SIGTERM comes."""
    name = check_name(argv[0])
    lab = Lab(name, state_root(), remembered_network(state_root(), name))
    monitors = [
        subprocess.Popen(["ip", "-n", netns, "monitor", "link", "address"], stdout=subprocess.PIPE)
        for netns in namespaces(lab)
    ]

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)
    simulator = Simulator(lab)
    simulator.look()
    try:
        _watch(simulator, monitors)
    finally:
        for monitor in monitors:
            monitor.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
