"""Captures the trees of a machine's RoCE devices while its addresses and cables change.

The unit tests read these trees; the GID tables of the simulated machines are compared with them.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from twinlab.command import run
from twinlab.errors import LabError
from twinlab.progress import Progress

from . import pair, qemu
from .machines import RAILS, Machine

_PROGRAM = Path(__file__).resolve().parent / "tree.py"
_ONE, _TWO = RAILS
_SETTLE = 3  # seconds until the kernel's GID table has followed


@dataclass(frozen=True)
class State:
    """A state of the ports, and the `ip` commands that lead to it from the one before."""

    name: str
    title: str
    commands: tuple[str, ...] = ()
    cable: bool = True  # of the first rail


STORY = (
    State("1-bare", "as booted: ports down, no addresses"),
    State("2-up", "both ports up, no addresses", (f"link set {_ONE} up", f"link set {_TWO} up")),
    State(
        "3-addressed",
        "one IPv4 address on each port, MTU 9000",
        (
            *(f"link set {port} mtu 9000" for port in RAILS),
            f"addr add 198.18.101.1/24 dev {_ONE}",
            f"addr add 198.18.102.1/24 dev {_TWO}",
        ),
    ),
    State("4-second", "a second IPv4 address on the first port", (f"addr add 198.18.103.1/24 dev {_ONE}",)),
    State("5-v6", "and an IPv6 address", (f"-6 addr add fd00:7::1/64 nodad dev {_ONE}",)),
    State("6-hole", "the second IPv4 address is gone", (f"addr del 198.18.103.1/24 dev {_ONE}",)),
    State("7-reused", "another address took its slot", (f"addr add 198.18.104.1/24 dev {_ONE}",)),
    State(
        "8-moved",
        "the first address was away while another one came, and has a new slot",
        (
            f"addr del 198.18.101.1/24 dev {_ONE}",
            f"addr add 198.18.105.1/24 dev {_ONE}",
            f"addr add 198.18.101.1/24 dev {_ONE}",
        ),
    ),
    State(
        "9-vlan",
        "an address on a VLAN of the first port",
        (
            f"link add link {_ONE} name {_ONE}.7 type vlan id 7",
            f"link set {_ONE}.7 up",
            f"addr add 198.18.107.1/24 dev {_ONE}.7",
        ),
    ),
    State("10-unplugged", "the first port's cable is out", cable=False),
    State("11-down", "and the port is set down", (f"link set {_ONE} down",), cable=False),
)


def write(machine: Machine, folder: Path, progress: Progress) -> None:
    """Play the story on a machine that was just booted, and write one file a state."""
    if run(pair.ssh_argv(machine, ["ip", "-br", "-4", "addr", "show", "dev", _ONE])).strip().endswith("/24"):
        raise LabError(f"{machine.name}'s ports have addresses: run `lab/rdma down` and `lab/rdma up` first")
    folder.mkdir(parents=True, exist_ok=True)
    for state in STORY:
        for end in pair.known():
            qemu.command(end, ["set_link", "port1", "on" if state.cable else "off"])
        (folder / f"{state.name}.txt").write_text(_tree(machine, state))
        progress.say(f"{state.name}: {state.title}")


def _tree(machine: Machine, state: State) -> str:
    """Bring the state about, and return the tree.  One login: under emulation that is what takes the time."""
    changes = [f"ip {words}; sleep {_SETTLE};" for words in state.commands]
    script = f"set -e; {' '.join(changes)} exec python3 - {shlex.quote(state.title)}"
    argv = pair.ssh_argv(machine, [f"sudo sh -c {shlex.quote(script)}"])
    return run(argv, stdin=_PROGRAM.read_text())
