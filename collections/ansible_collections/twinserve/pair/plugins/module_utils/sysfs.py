"""RoCE devices of a node with their network ports: what rails are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .gids import Gid, read_table
from .kernel_files import link_name, names, read_attr
from .netdevs import Netdev, netdev_names, read_addresses, read_netdev

_PLAIN = ("hca", "netdev", "pci", "state", "operstate", "carrier", "mtu", "speed")


@dataclass(frozen=True)
class Device:
    """An RDMA device and its port. `mtu` in bytes, `speed` in Mbit/s, `addresses` with prefix length."""

    hca: str
    netdev: str
    pci: str
    state: str
    operstate: str
    carrier: bool | None
    mtu: int
    speed: int | None
    addresses: tuple[str, ...] = ()
    gids: tuple[Gid, ...] = ()

    @property
    def up(self) -> bool:
        """Whether both halves are usable: the RDMA port is active and the network port is up."""
        return self.state == "ACTIVE" and self.operstate == "up" and self.carrier is not False

    def as_dict(self) -> dict[str, Any]:
        """Return the device as the agent reports it."""
        return {name: getattr(self, name) for name in _PLAIN} | {
            "addresses": list(self.addresses),
            "gids": [entry.as_dict() for entry in self.gids],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Device:
        """Build a device from what an agent reported (KeyError when a field is missing)."""
        fields = {name: data[name] for name in _PLAIN}
        gids = tuple(Gid(entry["index"], entry["gid"], entry["type"]) for entry in data["gids"])
        return cls(**fields, addresses=tuple(data["addresses"]), gids=gids)


def read_devices(
    root: Path = Path("/"), addresses: Mapping[str, Sequence[str]] | None = None
) -> list[Device]:
    """Read all RoCE devices below `root`, in the order of their PCI addresses.

    `addresses` maps port names to IPv4 addresses; left out, `ip` is asked. A device without a network
    port, or with an InfiniBand link layer, is none of ours.
    """
    known = read_addresses() if addresses is None else addresses
    found = (_read_device(root, hca, known) for hca in names(root / "sys/class/infiniband"))
    return sorted((device for device in found if device), key=lambda device: (device.pci, device.hca))


def _read_device(root: Path, hca: str, addresses: Mapping[str, Sequence[str]]) -> Device | None:
    base = root / "sys/class/infiniband" / hca
    ports = sorted((name for name in names(base / "ports") if name.isdigit()), key=int)
    if not ports:
        return None
    port = base / "ports" / ports[0]
    if read_attr(port / "link_layer") not in (None, "Ethernet"):
        return None
    table, owners = read_table(port)
    netdev = _netdev_of(root, hca, owners)
    if netdev is None:
        return None
    return Device(
        hca=hca,
        netdev=netdev.name,
        pci=link_name(base / "device") or netdev.pci or "",
        state=(read_attr(port / "state") or "").rpartition(":")[2].strip(),
        operstate=netdev.operstate,
        carrier=netdev.carrier,
        mtu=netdev.mtu,
        speed=netdev.speed,
        addresses=tuple(addresses.get(netdev.name, ())),
        gids=tuple(table),
    )


def _netdev_of(root: Path, hca: str, owners: Sequence[str]) -> Netdev | None:
    """Find the port of a device: by the GID table, which all drivers have, then by links that some have."""
    # The first entries are the port's own; later ones may belong to VLANs on top of it.
    for name in owners:
        if name and (netdev := read_netdev(name, root)):
            return netdev
    for name in names(root / "sys/class/infiniband" / hca / "device/net"):
        if netdev := read_netdev(name, root):
            return netdev
    for name in netdev_names(root):
        if hca in names(root / "sys/class/net" / name / "device/infiniband"):
            return read_netdev(name, root)
    return None
