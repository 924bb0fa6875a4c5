"""RDMA ports of the nodes of a pair, and which of them face each other: pure, from the probes.

Ports face each other when they have addresses in one subnet. Where addresses are missing their place on the
card decides: the same position among the cabled ports, the PCIe twin of the main rail for the second rail.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LINK_LOCAL = ipaddress.IPv4Network("169.254.0.0/16")


@dataclass(frozen=True)
class Port:
    """One RDMA port of one node. `addresses` have their prefix length, `mtu` is in bytes."""

    netdev: str
    hca: str
    pci: str
    addresses: tuple[str, ...]
    mtu: int
    up: bool
    carrier: bool

    @property
    def cable(self) -> int:
        """The QSFP port: the number after `np`, else the PCI function. PCIe twins have the same."""
        named = re.search(r"np(\d+)$", self.netdev)
        return int(named[1]) if named else int(self.pci.rpartition(".")[2] or "0", 16)

    @property
    def order(self) -> tuple[int, str, str]:
        """Cable first, then PCI address, so that the twins of a cable stay together."""
        return (self.cable, self.pci, self.netdev)


Rail = tuple[Port, ...]


def read_ports(node: dict[str, Any]) -> list[Port]:
    """RDMA ports of a probe, in a fixed order. A device without a netdev cannot carry RoCE: left out."""
    links = node["network"]["links"]
    ports = []
    for device in node["devices"]:
        if link := links.get(device["netdev"]):
            port = Port(
                netdev=device["netdev"],
                hca=device["hca"],
                pci=device["pci"] or "",
                addresses=tuple(link["addresses"]),
                mtu=int(link["mtu"]),
                up=bool(link["up"]),
                carrier=bool(link["carrier"]),
            )
            ports.append(port)
    return sorted(ports, key=lambda port: port.order)


def shared_network(ends: Sequence[Port], link_local: bool = False) -> ipaddress.IPv4Network | None:
    """The subnet in which all ends have an address, each its own; link-local ones count when asked for."""
    for address in ends[0].addresses:
        network = ipaddress.IPv4Interface(address).network
        if not link_local and network.overlaps(LINK_LOCAL):
            continue
        own = [address_in(port, network) for port in ends]
        if all(own) and len(set(own)) == len(own):
            return network
    return None


def address_in(port: Port, network: ipaddress.IPv4Network) -> str | None:
    """The port's address in that subnet."""
    found = (one for one in port.addresses if ipaddress.IPv4Interface(one).network == network)
    return next(found, None)


def sharing_rails(ports: Sequence[Sequence[Port]], link_local: bool = False) -> list[Rail]:
    """Ports by rank that already share a subnet, in the head's order: main rail, its twin, other cables."""
    rails: list[Rail] = []
    for port in ports[0]:
        ends = [port]
        for others in ports[1:]:
            free = (one for one in others if all(one not in rail for rail in rails))
            ends += [one for one in free if shared_network((port, one), link_local)][:1]
        if len(ends) == len(ports) and shared_network(ends, link_local):
            rails.append(tuple(ends))
    return rails


def placed_rails(
    ports: Sequence[Sequence[Port]], rails: Sequence[Rail], ours: Sequence[ipaddress.IPv4Network]
) -> list[Rail]:
    """The remaining ports by place: twins of the main rail once there is one, other people's cables last."""
    free = [[port for port in own if all(port not in rail for rail in rails)] for own in ports]
    if rails:
        free = [[p for p in own if p.cable == main.cable] for own, main in zip(free, rails[0], strict=True)]
    ordered = [_by_place(own, {port.cable for port in own if is_taken(port, ours)}) for own in free]
    return list(zip(*ordered, strict=False))


def _by_place(ports: Sequence[Port], last: set[int]) -> list[Port]:
    return sorted(ports, key=lambda port: (port.cable in last, port.order))


def is_taken(port: Port, ours: Sequence[ipaddress.IPv4Network]) -> bool:
    """Whether others gave the port an address; link-local ones appear by themselves."""
    own = [*ours, LINK_LOCAL]
    networks = [ipaddress.IPv4Interface(one).network for one in port.addresses]
    return any(not any(network.overlaps(one) for one in own) for network in networks)
