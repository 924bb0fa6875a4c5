"""RDMA ports of the nodes of a pair, and which of them belong together by their place: pure, from the probes.

Ports that have addresses face each other as `neighbours` says. Where addresses are missing their place on the
card decides: the same position among the cabled ports, the PCIe twin of the main rail for the second rail.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import netplan_file, nm_profiles
from .neighbours import LINK_LOCAL, is_twin, lasting, without
from .network_owner import Maker

NETPLAN_FILE = str(netplan_file.FILE)


@dataclass(frozen=True)
class Port:
    """One RDMA port of one node. `addresses` have their prefix length, `mtu` is in bytes.

    `enabled` is what an administrator set; `up` says that there is also a live other end. `ours` is whether
    the port is named in our netplan file, or has a NetworkManager profile of ours.
    """

    netdev: str
    hca: str
    pci: str
    addresses: tuple[str, ...]
    mtu: int
    enabled: bool
    up: bool
    maker: Maker
    ours: bool
    ipv6: tuple[str, ...] = ()
    master: str | None = None
    carries: tuple[str, ...] = ()
    leased: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()

    @property
    def cable(self) -> int:
        """The QSFP port: the number after `np`, else the PCI function. PCIe twins have the same."""
        named = re.search(r"np(\d+)$", self.netdev)
        return int(named[1]) if named else int(self.pci.rpartition(".")[2] or "0", 16)

    @property
    def domain(self) -> str:
        """The PCIe domain, in which the two twins of a cable differ."""
        return self.pci.partition(":")[0]

    @property
    def order(self) -> tuple[int, str, str]:
        """Cable first, then PCI address, so that the twins of a cable stay together."""
        return (self.cable, self.pci, self.netdev)

    @property
    def addressed_by_others(self) -> bool:
        """Whether somebody else gave it an address; link-local ones appear by themselves."""
        return bool(lasting(self.addresses)) and not self.ours

    @property
    def bound(self) -> str | None:
        """Which other port lives on it, in words: whatever is written for this one would break that one."""
        if self.master:
            return f"is part of {self.master}"
        return f"carries {', '.join(self.carries)}" if self.carries else None

    @property
    def claimed(self) -> str | None:
        """Why it is somebody's although it has no IPv4 address that he gave it, in words.

        A service's own fallback for ports that nobody set up lies in /run or /usr/lib. A file by which a port
        only gives itself a link-local address, as NVIDIA's do, claims nothing.
        """
        if self.ours or lasting(self.addresses):
            return None
        if self.ipv6:
            return f"has {' and '.join(self.ipv6)}"
        files = [one for one in self.maker.files if not one.startswith(("/run/", "/usr/lib/", "/lib/"))]
        given = files and not self.addresses and not self.maker.link_local
        return f"is in {', '.join(files)}" if given else None

    def further(self, address: str) -> tuple[str, ...]:
        """Other addresses that somebody gave the port beside the rail's, in the kernel's order.

        Not those that netplan merges into ours anyway, and those that are leased. Of a port that gets another
        address only what was added by hand to ours: the rest is what cannot work.
        """
        made, others = self.maker, [one for one in lasting(self.addresses) if one != address]
        merged = made.service == "networkd" and str(made.profile).startswith("10-netplan-") and not self.ours
        if address not in self.addresses:
            others = [one for one in others if self.ours and one in made.by_hand]
        return tuple(one for one in others if one not in self.leased and not (merged and self.stays(one)))

    def loses(self, kept: Sequence[str]) -> list[str]:
        """What was set by hand and is gone once the port is set up anew, but for the addresses `kept`."""
        addresses = [one for one in lasting(self.addresses) if one in self.maker.by_hand and one not in kept]
        in_file = self.maker.service == "networkd" and self.maker.files and not self.ours
        ipv6 = () if in_file else self.ipv6
        return [*addresses, *ipv6, *(f"route {route}" for route in self.routes)]

    def stays(self, address: str) -> bool:
        """Whether the address is there again after a reboot."""
        return self.maker.lasting and address not in self.maker.by_hand


Rail = tuple[Port, ...]


def is_ours(netdev: str, network: Mapping[str, Any]) -> bool:
    """Whether we configured the port, by the `network` part of a probe."""
    in_file = netdev in netplan_file.ports_of(network["netplan"].get(NETPLAN_FILE))
    return in_file or network["makers"][netdev]["profile"] == nm_profiles.name_of(netdev)


def read_ports(node: Mapping[str, Any]) -> list[Port]:
    """RDMA ports of a probe, in a fixed order. A device without a netdev cannot carry RoCE: left out."""
    network = node["network"]
    ports = []
    for device in node["devices"]:
        if link := network["links"].get(device["netdev"]):
            made = network["makers"][device["netdev"]]
            port = Port(
                netdev=device["netdev"],
                hca=device["hca"],
                pci=device["pci"] or "",
                addresses=tuple(link["addresses"]),
                mtu=int(link["mtu"]),
                enabled=bool(link["up"]),
                up=bool(link["carrier"]),
                maker=Maker(**made | {"files": tuple(made["files"]), "by_hand": tuple(made["by_hand"])}),
                ours=is_ours(device["netdev"], network),
                ipv6=tuple(link["ipv6"]),
                master=link["master"],
                carries=tuple(link["carries"]),
                leased=tuple(link["leased"]),
                routes=tuple(network["routes"].get(device["netdev"], ())),
            )
            ports.append(port)
    return sorted(ports, key=lambda port: port.order)


def placed_rails(
    ports: Sequence[Sequence[Port]],
    rails: Sequence[Rail],
    ours: Sequence[ipaddress.IPv4Network],
    twins_only: bool,
) -> list[Rail]:
    """The remaining ports by place: twins of the main rail once there is one, then separate cables.

    Cables that others gave an address outside of `ours` may lead elsewhere: they are the last choice for the
    main rail, and none for a second one on a cable of its own.
    """
    free = [without(rails, rank, own) for rank, own in enumerate(ports)]
    if not rails:
        return _in_order(free, ours)
    twins = [[p for p in own if is_twin(main, p)] for own, main in zip(free, rails[0], strict=True)]
    rest = [
        [port for port in own if port not in beside and not is_taken(port, ours)]
        for own, beside in zip(free, twins, strict=True)
    ]
    return _in_order(twins, ours) + ([] if twins_only else _in_order(rest, ours))


def has_twin(port: Port, ports: Sequence[Port]) -> bool:
    """Whether the port's cable has two PCIe links on this node, as on a Spark."""
    return any(is_twin(port, other) for other in ports)


def _in_order(ports: Sequence[Sequence[Port]], ours: Sequence[ipaddress.IPv4Network]) -> list[Rail]:
    """Ports at the same place: those of one PCIe domain first, so that a twin faces a twin."""
    last = [{port.cable for port in own if is_taken(port, ours)} for own in ports]

    def place(rank: int, port: Port) -> tuple[bool, tuple[int, str, str]]:
        return port.cable in last[rank], port.order

    ordered = [sorted(own, key=partial(place, rank)) for rank, own in enumerate(ports)]
    rails: list[Rail] = []
    for same_domain in (True, False):
        for port in without(rails, 0, ordered[0]):
            ends = [port]
            for rank, others in enumerate(ordered[1:], start=1):
                free = without(rails, rank, others)
                ends += [one for one in free if one.domain == port.domain or not same_domain][:1]
            if len(ends) == len(ports):
                rails.append(tuple(ends))
    return sorted(rails, key=lambda rail: any(place(rank, end)[0] for rank, end in enumerate(rail)))


def is_taken(port: Port, ours: Sequence[ipaddress.IPv4Network]) -> bool:
    """Whether others gave the port an address in a subnet that is none of ours."""
    own = [*ours, LINK_LOCAL]
    networks = [ipaddress.IPv4Interface(one).network for one in port.addresses]
    return any(not any(network.overlaps(one) for one in own) for network in networks)
