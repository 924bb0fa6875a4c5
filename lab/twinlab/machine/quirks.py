"""What a person did to the hosts' RDMA devices: lost ones, moved GIDs, bad cables, a cable in another socket.

The verbs write it, the simulator draws it: one file for a lab, which goes with `lab down`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

from ..errors import LabError
from ..files import write_whole
from ..hardware import Port
from ..layout import Host, Lab

_PATIENCE = 10.0  # seconds until the simulator has drawn a change


@dataclass(frozen=True)
class PortQuirk:
    """What is odd about one port."""

    is_lost: bool = False
    gid_shift: int = 0  # slots by which IPv4 entries lie higher
    v1_only: bool = False
    is_flaky: bool = False


@dataclass(frozen=True)
class Quirks:
    """All of it. Devices are named HOST/HCA; a host that is not in `sockets` has its cable in socket 0."""

    lost: tuple[str, ...] = ()
    shifts: dict[str, int] = field(default_factory=dict)
    v1_only: tuple[str, ...] = ()
    flaky: tuple[int, ...] = ()
    sockets: dict[str, int] = field(default_factory=dict)

    def of_port(self, host: Host, port: Port) -> PortQuirk:
        """What concerns one port."""
        name = f"{host.name}/{port.hca}"
        return PortQuirk(
            is_lost=name in self.lost,
            gid_shift=self.shifts.get(name, 0),
            v1_only=name in self.v1_only,
            is_flaky=port.rail in self.flaky and port.socket == self.socket(host),
        )

    def socket(self, host: Host) -> int:
        """The socket of a host that has the cable."""
        return self.sockets.get(host.name, 0)

    def with_lost(self, device: str, lost: bool) -> Quirks:
        """After a device went, or came back."""
        others = tuple(one for one in self.lost if one != device)
        return replace(self, lost=(*others, device) if lost else others)

    def with_gids(self, device: str, shift: int, v1_only: bool) -> Quirks:
        """After the IPv4 entries of a device moved, or lost their v2 twins."""
        shifts = {name: slots for name, slots in self.shifts.items() if name != device}
        others = tuple(one for one in self.v1_only if one != device)
        return replace(
            self,
            shifts=shifts | ({device: shift} if shift else {}),
            v1_only=(*others, device) if v1_only else others,
        )

    def with_flaky(self, rail: int, flaky: bool) -> Quirks:
        """After a cable went bad, or was exchanged."""
        others = tuple(one for one in self.flaky if one != rail)
        return replace(self, flaky=(*others, rail) if flaky else others)

    def with_socket(self, host: Host, socket: int) -> Quirks:
        """After a host's cable was plugged into a socket."""
        return replace(self, sockets=self.sockets | {host.name: socket})

    def after_power_cycle(self, host: Host) -> Quirks:
        """A lost device is back when its host was without power."""
        return replace(self, lost=tuple(one for one in self.lost if not one.startswith(f"{host.name}/")))


def render(quirks: Quirks) -> str:
    """The text of the file."""
    return json.dumps(asdict(quirks), indent=2, sort_keys=True) + "\n"


def parse(text: str) -> Quirks:
    """Read the text of the file; an empty one is a lab in which nothing is odd."""
    data = json.loads(text or "{}")
    lists = {name: tuple(data.get(name, ())) for name in ("lost", "v1_only", "flaky")}
    return Quirks(shifts=data.get("shifts", {}), sockets=data.get("sockets", {}), **lists)


def read(lab: Lab) -> Quirks:
    """What was done to a lab."""
    return parse(lab.quirks.read_text() if lab.quirks.exists() else "")


def write(lab: Lab, quirks: Quirks) -> None:
    """Write it; the simulator finds it by itself."""
    write_whole(lab.quirks, render(quirks))


def change(lab: Lab, edit: Callable[[Quirks], Quirks]) -> None:
    """Change it, and wait until the hosts see it.  Raises LabError when nobody draws."""
    quirks = edit(read(lab))
    write(lab, quirks)
    end = time.monotonic() + _PATIENCE
    while not is_drawn(lab, quirks):
        if time.monotonic() > end:
            raise LabError(f"the lab's simulator does not draw it: see {lab.logs}/simulator.log")
        time.sleep(0.05)


def is_drawn(lab: Lab, quirks: Quirks) -> bool:
    """Whether the hosts see it."""
    return lab.drawn_quirks.exists() and lab.drawn_quirks.read_text() == render(quirks)


def device(host: Host, name: str) -> str:
    """HOST/HCA of a device that the host has.  Raises LabError."""
    known = [port.hca for port in host.hardware.ports]
    if name not in known:
        raise LabError(f"{host.name} has no RDMA device {name}: {', '.join(known)}")
    return f"{host.name}/{name}"
