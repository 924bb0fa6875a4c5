"""Which ports face each other, and which addresses they need: pure, from the probes of all nodes of a pair.

A port that already shares a subnet with the port it faces is kept as it is, whoever configured it. What is
missing gets an address from `subnets` (one a rail, host number = rank + 1) through a netplan file of ours,
which leaves each port with the service that owns it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

NETPLAN_FILE = "/etc/netplan/60-twinserve-fabric.yaml"


class FabricError(ValueError):
    """The link cannot be planned; the text says what is wrong on which host and what to do."""


@dataclass(frozen=True)
class Wish:
    """The settings that concern the link."""

    rails: str = "auto"
    manage: bool = True
    netdev: str | None = None
    mtu: int = 9000
    subnets: tuple[str, ...] = ("192.168.177.0/24", "192.168.178.0/24")


@dataclass(frozen=True)
class Port:
    """One RDMA port of one node."""

    netdev: str
    hca: str
    pci: str
    addresses: tuple[str, ...]
    mtu: int
    up: bool
    carrier: bool

    @property
    def order(self) -> tuple[int, str, str]:
        """Cable (number after `np`, or PCI function), then PCI address: twins of a cable stay together."""
        cable = re.search(r"np(\d+)$", self.netdev)
        function = self.pci.rpartition(".")[2]
        return (int(cable[1]) if cable else int(function or 0, 16), self.pci, self.netdev)


@dataclass
class Plan:
    """What this node's fabric needs. `ports` are all rails' ports of this node, main rail first."""

    bring_up: list[str] = field(default_factory=list)
    ports: list[dict[str, Any]] = field(default_factory=list)
    netplan: str | None = None
    summary: str = ""
    warnings: list[str] = field(default_factory=list)
    error: str = ""


def read_ports(node: dict[str, Any]) -> list[Port]:
    """RDMA ports of a probe, in a fixed order. A device without a netdev cannot carry RoCE: left out."""
    links = node["network"]["links"]
    ports = []
    for device in node["devices"]:
        link = links.get(device["netdev"])
        if link is None:
            continue
        ports.append(
            Port(device["netdev"], device["hca"], device["pci"] or "", tuple(link["addresses"]),
                 int(link["mtu"]), bool(link["up"]), bool(link["carrier"]))
        )  # fmt: skip
    return sorted(ports, key=lambda port: port.order)


def plan_all(nodes: Sequence[dict[str, Any]], names: Sequence[str], wish: Wish) -> list[dict[str, Any]]:
    """One plan a node, by rank. An error belongs to the pair, so every node's plan carries it."""
    try:
        return [asdict(plan) for plan in _plan(nodes, names, wish)]
    except FabricError as error:
        return [asdict(Plan(error=str(error))) for _ in nodes]


def _plan(nodes: Sequence[dict[str, Any]], names: Sequence[str], wish: Wish) -> list[Plan]:
    every = [read_ports(node) for node in nodes]
    for name, ports in zip(names, every, strict=True):
        if not ports:
            raise FabricError(
                f"{name} has no RDMA network device: load mlx5_ib, or check the ConnectX card (lspci)"
            )
    down = _worth_looking(every, wish) if wish.manage else []
    if any(down):
        # Only a port that is up knows whether a cable is in it.
        text = "RDMA ports are down: they are set up first, to see which are cabled"
        return [Plan(bring_up=ports, summary=text) for ports in down]
    cabled = [[port for port in ports if port.carrier] for ports in every]
    for name, ports, live in zip(names, every, cabled, strict=True):
        if not live:
            raise FabricError(
                f"{name}: no RDMA port has a cable with a live other end "
                f"({', '.join(port.netdev for port in ports)})"
            )
    facing = _facing(cabled, names, wish)
    return _address(facing, nodes, names, wish)


def _worth_looking(every: Sequence[Sequence[Port]], wish: Wish) -> list[list[str]]:
    """Ports that are down and may be rails: all while no rail is known, then only twins of the known ones."""
    live = [[port for port in ports if port.carrier] for ports in every]
    known = [ends for ends in zip(*live, strict=False) if _shared_subnet(ends)]
    if len(known) >= (1 if wish.rails == "1" else 2):
        return []
    down: list[list[str]] = []
    for rank, ports in enumerate(every):
        cables = {ends[rank].order[0] for ends in known}
        down.append([port.netdev for port in ports if not port.up and (not known or port.order[0] in cables)])
    return down


def _facing(cabled: list[list[Port]], names: Sequence[str], wish: Wish) -> list[tuple[Port, ...]]:
    """Ports that face each other, main rail first: by a shared subnet, else by their place on the card."""
    if wish.netdev:
        for rank, name in enumerate(names):
            chosen = [port for port in cabled[rank] if port.netdev == wish.netdev]
            if rank == 0 and not chosen:
                up = ", ".join(port.netdev for port in cabled[rank])
                raise FabricError(f"fabric_netdev {wish.netdev} is down on {name}; up RoCE ports: {up}")
            rest = [port for port in cabled[rank] if port.netdev != wish.netdev]
            cabled[rank] = chosen + rest
    limit = 1 if wish.rails == "1" else 2
    first, others = cabled[0], cabled[1:]
    rails: list[tuple[Port, ...]] = []
    for port in first:
        free = [[p for p in ports if all(p not in rail for rail in rails)] for ports in others]
        partners = [_partner(port, ports) for ports in free]
        if all(partners) and len(rails) < limit:
            rails.append((port, *[partner for partner in partners if partner]))
    if wish.rails == "2" and len(rails) < 2:
        seen = "; ".join(
            f"{name}: {', '.join(p.netdev for p in ports)}" for name, ports in zip(names, cabled, strict=True)
        )
        raise FabricError(
            f"rails is 2, but only {len(rails)} pair of cabled RDMA ports was found ({seen}); use rails: auto"
        )
    return rails


def _partner(port: Port, candidates: Sequence[Port]) -> Port | None:
    """The peer's port in the same subnet, else its first one that has no address yet."""
    for candidate in candidates:
        if _shared_subnet((port, candidate)):
            return candidate
    bare = [candidate for candidate in candidates if not candidate.addresses or not port.addresses]
    return (bare or list(candidates) or [None])[0]


def _shared_subnet(ends: Sequence[Port]) -> bool:
    """True when all ends have an address in one common subnet and none has another's address."""
    networks = [{ipaddress.ip_interface(a).network for a in port.addresses} for port in ends]
    return bool(set.intersection(*networks))


def _address(
    facing: list[tuple[Port, ...]], nodes: Sequence[dict[str, Any]], names: Sequence[str], wish: Wish
) -> list[Plan]:
    """Keep what is valid; give the rest an address, or say that it lacks one."""
    plans = [Plan() for _ in names]
    for number, ends in enumerate(facing):
        kept = _shared_subnet(ends)
        if not kept and not wish.manage:
            where = ", ".join(f"{name} {port.netdev}: {', '.join(port.addresses) or 'no address'}"
                              for name, port in zip(names, ends, strict=True))  # fmt: skip
            raise FabricError(
                f"no CX7 subnet shared on rail {number} ({where}); "
                "give both ends one, or set fabric_manage: true"
            )
        mtus = {port.mtu for port in ends}
        if kept and len(mtus) > 1 and not wish.manage:
            text = ", ".join(f"{name} {port.mtu}" for name, port in zip(names, ends, strict=True))
            raise FabricError(f"rail {number} MTU differs: {text}; set both to the same value")
        keep = kept and len(mtus) == 1
        for rank, port in enumerate(ends):
            plans[rank].ports.append(_wanted_port(number, rank, port, keep, nodes, names, wish))
    for plan, node in zip(plans, nodes, strict=True):
        ours = node["network"]["netplan"].get(NETPLAN_FILE)
        if any(not port["kept"] for port in plan.ports):
            mine = [port for port in plan.ports if not port["kept"] or (ours and port["netdev"] in ours)]
            plan.netplan = render_netplan(mine, node["network"]["owners"])
    for rank, plan in enumerate(plans):
        for number, port in enumerate(plan.ports):
            others = [other.ports[number]["address"] for peer, other in enumerate(plans) if peer != rank]
            port["peers"] = [address.split("/")[0] for address in others]
    rails = [" <-> ".join(f"{port.hca} ({port.netdev})" for port in ends) for ends in facing]
    for plan in plans:
        plan.summary = f"{len(rails)} rail{'s' if len(rails) != 1 else ''}: {'; '.join(rails)}"
    return plans


def _wanted_port(
    number: int, rank: int, port: Port, keep: bool,
    nodes: Sequence[dict[str, Any]], names: Sequence[str], wish: Wish,
) -> dict[str, Any]:  # fmt: skip
    """Name, address and MTU that this end shall have."""
    if keep:
        address, mtu = port.addresses[0], port.mtu
    else:
        network = _free_subnet(number, nodes, names, wish)
        address, mtu = f"{network[rank + 1]}/{network.prefixlen}", wish.mtu
    return {
        "rail": number,
        "netdev": port.netdev,
        "hca": port.hca,
        "address": address,
        "mtu": mtu,
        "kept": keep,
    }


def _free_subnet(
    number: int, nodes: Sequence[dict[str, Any]], names: Sequence[str], wish: Wish
) -> ipaddress.IPv4Network:
    """The rail's subnet from the settings, refused when a port that is no rail already lives in it."""
    if number >= len(wish.subnets):
        raise FabricError(
            f"fabric_subnets has {len(wish.subnets)} entries, rail {number} needs one of its own"
        )
    network = ipaddress.IPv4Network(wish.subnets[number])
    if number and network.overlaps(ipaddress.IPv4Network(wish.subnets[0])):
        raise FabricError(
            f"rail 0 and rail {number} need different subnets (fabric_subnets: {', '.join(wish.subnets)})"
        )
    for name, node in zip(names, nodes, strict=True):
        rdma = {device["netdev"] for device in node["devices"]}
        for netdev, link in node["network"]["links"].items():
            clash = [a for a in link["addresses"] if ipaddress.ip_interface(a).network.overlaps(network)]
            if clash and netdev not in rdma:
                raise FabricError(
                    f"fabric_subnets {network} overlaps {clash[0]} on {name} {netdev}; choose another subnet"
                )
    return network


def render_netplan(ports: Sequence[dict[str, Any]], owners: dict[str, str | None]) -> str:
    """Our netplan file. The renderer is named for each port, so that no other port changes hands."""
    lines = [
        "# Written by Twinserve (role fabric). Other files in this folder are left alone.",
        "network:",
        "  version: 2",
    ]
    lines.append("  ethernets:")
    for port in sorted(ports, key=lambda one: str(one["netdev"])):
        renderer = "NetworkManager" if owners.get(port["netdev"]) == "NetworkManager" else "networkd"
        lines += [
            f"    {port['netdev']}:",
            f"      renderer: {renderer}",
            "      dhcp4: false",
            "      link-local: []",
            f"      mtu: {port['mtu']}",
            f"      addresses: [{port['address']}]",
        ]
    return "\n".join(lines) + "\n"
