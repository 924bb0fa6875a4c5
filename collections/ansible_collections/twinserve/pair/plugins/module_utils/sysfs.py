"""RoCE devices of a node with their network ports: what rails are made of."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .gids import Gid, read_table
from .kernel_files import link_name, names, read_attr
from .netdevs import Netdev, netdev_names, read_addresses, read_netdev

_PLAIN = ("hca", "netdev", "pci", "state", "operstate", "carrier", "mtu", "speed", "mac", "shares_subnet")


@dataclass(frozen=True)
class Device:
    """An RDMA device and its port. `mtu` in bytes, `speed` in Mbit/s, `addresses` with prefix length.

    `shares_subnet`: another port of the node has an address in a subnet of this one, so that the kernel
    answers for both through one of them.
    """

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
    mac: str = ""
    shares_subnet: bool = False

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
        gids = tuple(Gid(one["index"], one["gid"], one["type"], one["netdev"]) for one in data["gids"])
        return cls(**fields, addresses=tuple(data["addresses"]), gids=gids)


def read_devices(
    root: Path = Path("/"), addresses: Mapping[str, Sequence[str]] | None = None
) -> list[Device]:
    """Read all RoCE devices below `root`, in the order of their PCI addresses.

    `addresses` maps port names to IPv4 addresses; left out, `ip` is asked. A device without a network
    port, or with an InfiniBand link layer, is none of ours.
    """
    known = read_addresses() if addresses is None else addresses
    found = (read_device(root, hca, known) for hca in device_names(root))
    return in_order(device for device in found if device)


def device_names(root: Path = Path("/")) -> list[str]:
    """Return the names of all RDMA devices, sorted; not all of them are RoCE devices with a port."""
    return names(root / "sys/class/infiniband")


def in_order(devices: Iterable[Device]) -> list[Device]:
    """Sort devices by their PCI addresses."""
    return sorted(devices, key=lambda device: (device.pci, device.hca))


def port_folder(root: Path, hca: str) -> Path | None:
    """Return the folder of a device's port; its only one: adapters with several show a device for each."""
    base = root / "sys/class/infiniband" / hca / "ports"
    ports = sorted((name for name in names(base) if name.isdigit()), key=int)
    return base / ports[0] if ports else None


def read_device(root: Path, hca: str, addresses: Mapping[str, Sequence[str]]) -> Device | None:
    """Read one RoCE device; None when it has no network port, or is none (any more).

    Raises OSError when one of its files cannot be read.
    """
    base, port = root / "sys/class/infiniband" / hca, port_folder(root, hca)
    if port is None or read_attr(port / "link_layer") not in (None, "Ethernet"):
        return None
    table = read_table(port)
    netdev = _netdev_of(root, hca, [entry.netdev for entry in table])
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
        mac=netdev.mac,
        shares_subnet=_shares_subnet(netdev.name, addresses),
    )


def _shares_subnet(netdev: str, addresses: Mapping[str, Sequence[str]]) -> bool:
    own = [ipaddress.IPv4Interface(one).network for one in addresses.get(netdev, ())]
    others = [
        ipaddress.IPv4Interface(one).network
        for name, found in addresses.items()
        if name != netdev
        for one in found
    ]
    return any(one.overlaps(other) for one in own for other in others)


def _netdev_of(root: Path, hca: str, owners: Sequence[str]) -> Netdev | None:
    """Find the port of a device: by the GID table, which all drivers have, then by links that some have."""
    # The first entries are the port's own; later ones may belong to VLANs on top of it.
    for name in owners:
        if name and (netdev := read_netdev(name, root)):
            return netdev
    base = root / "sys/class/infiniband" / hca
    # A software device (rdma_rxe) has no PCI function, and names the port on which it was made.
    for name in [*names(base / "device/net"), read_attr(base / "parent") or ""]:
        if name and (netdev := read_netdev(name, root)):
            return netdev
    for name in netdev_names(root):
        if hca in names(root / "sys/class/net" / name / "device/infiniband"):
            return read_netdev(name, root)
    return None
