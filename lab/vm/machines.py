"""The two machines as data: names, addresses, ports, and the files that each has of its own over the base."""

from __future__ import annotations

import json
import stat
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from twinlab.command import run

from .base import USER, USER_ID
from .cpio import Entry

MANAGEMENT = "enP7s7"
# The controller's way in, a network of QEMU's own for each machine. Not the management network: QEMU answers
# there for every address, also for that of the other machine.
CONTROLLER, WAY_IN = "enP8s8", "198.18.98.15"
RAILS = ("enp1s0f0np0", "enP2p1s0f0np0")
DEVICES = ("rocep1s0f0", "roceP2p1s0f0")
_SECRET = stat.S_IFREG | 0o600


@dataclass(frozen=True)
class Machine:
    """One of the two. Its folder holds console, monitor and keys.

    Ports of the controller: `ssh_port` leads to its sshd, `cables` (UDP) are its ends of the management
    network and of both rails.
    """

    name: str
    number: int  # 1 is rank 0
    folder: Path
    ssh_port: int
    cables: tuple[int, int, int]

    @property
    def address(self) -> str:
        """On the management network (RFC 2544), which both machines are on, and nobody else."""
        return f"198.18.99.{10 + self.number}"

    def mac(self, port: int) -> str:
        """Hardware address of port 0 (management), 1 or 2 (the rails), 3 (controller)."""
        return f"4c:bb:47:00:{self.number:02x}:{0x0F + port:02x}"

    @property
    def initial(self) -> Path:
        """The initial file system with this machine's own files."""
        return self.folder / "initial.cpio"

    @property
    def console(self) -> Path:
        """What it prints on its console."""
        return self.folder / "console.log"

    @property
    def monitor(self) -> Path:
        """The socket that takes QEMU's own commands."""
        return self.folder / "monitor"

    @property
    def pid(self) -> Path:
        """The process id of its QEMU."""
        return self.folder / "pid"

    @property
    def host_key(self) -> Path:
        """Its ssh host key, made once."""
        return self.folder / "host_key"


def pair(root: Path, ports: Sequence[int]) -> tuple[Machine, Machine]:
    """Head and worker, with four ports of the controller for each."""
    ssh_a, lan_a, one_a, two_a, ssh_b, lan_b, one_b, two_b = ports
    return (
        Machine("roce-a", 1, root / "roce-a", ssh_a, (lan_a, one_a, two_a)),
        Machine("roce-b", 2, root / "roce-b", ssh_b, (lan_b, one_b, two_b)),
    )


def make_key(path: Path) -> str:
    """Make an ssh key pair unless it is there.  Returns the public half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)])
    return path.with_suffix(".pub").read_text()


def own_files(machine: Machine, user_key: str) -> list[Entry]:
    """Name, keys, management address, and which hardware address is which port."""
    public = make_key(machine.host_key)
    home = f"home/{USER}"
    return [
        _text("machine/etc/hostname", f"{machine.name}\n"),
        _text("machine/etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {machine.name}\n::1 localhost\n"),
        _text("machine/etc/machine-id", f"{uuid.uuid5(uuid.NAMESPACE_DNS, machine.name).hex}\n"),
        _text("machine/etc/ssh/ssh_host_ed25519_key.pub", public),
        Entry("machine/etc/ssh/ssh_host_ed25519_key", machine.host_key.read_bytes(), _SECRET),
        Entry("machine/etc/netplan/01-management.yaml", _netplan(machine).encode(), _SECRET),
        *(_link(port, name, machine) for port, name in enumerate((MANAGEMENT, *RAILS, CONTROLLER))),
        Entry(f"machine/{home}", mode=stat.S_IFDIR | 0o750, owner=USER_ID),
        Entry(f"machine/{home}/.ssh", mode=stat.S_IFDIR | 0o700, owner=USER_ID),
        Entry(f"machine/{home}/.ssh/authorized_keys", user_key.encode(), _SECRET, USER_ID),
    ]


def _text(path: str, content: str) -> Entry:
    return Entry(path, content.encode())


def _link(port: int, name: str, machine: Machine) -> Entry:
    text = f"[Match]\nMACAddress={machine.mac(port)}\n\n[Link]\nName={name}\nMTUBytes=1500\n"
    return _text(f"machine/etc/systemd/network/10-{name}.link", text)


def _netplan(machine: Machine) -> str:
    addresses = {MANAGEMENT: f"{machine.address}/24", CONTROLLER: f"{WAY_IN}/24"}
    ports = {port: {"addresses": [address]} for port, address in addresses.items()}
    # JSON is YAML; netplan takes it.
    return json.dumps({"network": {"version": 2, "renderer": "networkd", "ethernets": ports}}) + "\n"
