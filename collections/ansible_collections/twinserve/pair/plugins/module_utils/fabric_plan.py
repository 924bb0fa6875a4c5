"""Which addresses the rails of a pair need: pure, from the probes of all nodes.

A port that already shares a subnet with the port it faces keeps its address, whoever configured it. What is
missing gets an address from `subnets` (one a rail, host number = rank + 1) by the service that has the port:
networkd through a netplan file of ours, NetworkManager through a profile of ours for each port.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .fabric_ports import (
    LINK_LOCAL,
    Port,
    Rail,
    address_in,
    placed_rails,
    read_ports,
    shared_network,
    sharing_rails,
)

NETPLAN_FILE = "/etc/netplan/60-twinserve-fabric.yaml"


class FabricError(ValueError):
    """The link cannot be planned; the text says what is wrong on which host and what to do."""


@dataclass(frozen=True)
class Wish:
    """The settings that concern the link.

    `netdevs` and `peers` are by rank: the main rail's own port, the peer's address on it; None is found.
    """

    rails: str = "auto"
    manage: bool = True
    netdevs: tuple[str | None, ...] = ()
    peers: tuple[str | None, ...] = ()
    mtu: int = 9000
    subnets: tuple[str, ...] = ("192.168.177.0/24", "192.168.178.0/24")

    @property
    def names_main(self) -> bool:
        """Whether the main rail is said rather than found."""
        return any(self.netdevs) or any(self.peers)

    @property
    def limit(self) -> int:
        """How many rails are wanted at most."""
        return 1 if self.rails == "1" else 2

    @property
    def networks(self) -> list[ipaddress.IPv4Network]:
        """The subnets, parsed. Raises FabricError for what is no network of at least two hosts."""
        try:
            networks = [ipaddress.IPv4Network(subnet) for subnet in self.subnets]
        except ValueError as error:
            raise FabricError(f"fabric_subnets: {error}") from error
        for network in networks:
            if network.prefixlen > 30:
                raise FabricError(f"fabric_subnets: {network} has no room for two hosts")
        return networks


@dataclass
class Plan:
    """What this node's fabric needs. `ports` are all rails' ports of this node, main rail first.

    `netplan` is the content that our file shall have, `profiles` are those that NetworkManager shall have
    (netdev, address with prefix length, mtu in bytes); None and empty when nothing is to be written there.
    `found` are sentences on what was found, and who made it.
    """

    bring_up: list[str] = field(default_factory=list)
    ports: list[dict[str, Any]] = field(default_factory=list)
    netplan: str | None = None
    profiles: list[dict[str, Any]] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    summary: str = ""
    warnings: list[str] = field(default_factory=list)
    error: str = ""


@dataclass(frozen=True)
class _Pair:
    """The nodes that are planned for, by rank."""

    nodes: Sequence[dict[str, Any]]
    names: Sequence[str]
    wish: Wish


def plan_all(nodes: Sequence[dict[str, Any]], names: Sequence[str], wish: Wish) -> list[dict[str, Any]]:
    """One plan a node, by rank. An error belongs to the pair, so every node's plan carries it."""
    try:
        return [asdict(plan) for plan in _plan(_Pair(nodes, names, wish))]
    except FabricError as error:
        return [asdict(Plan(error=str(error))) for _ in nodes]


def _plan(pair: _Pair) -> list[Plan]:
    every = [read_ports(node) for node in pair.nodes]
    for name, ports in zip(pair.names, every, strict=True):
        if not ports:
            raise FabricError(
                f"{name} has no RDMA network device: load mlx5_ib, or check the ConnectX card (lspci)"
            )
    down = _worth_looking(every, pair.wish) if pair.wish.manage else []
    if any(down):
        # Only a port that is up knows whether a cable is in it.
        text = "RDMA ports are down: they are set up first, to see which are cabled"
        return [Plan(bring_up=ports, summary=text) for ports in down]
    cabled = [[port for port in ports if port.carrier] for ports in every]
    for name, ports, live in zip(pair.names, every, cabled, strict=True):
        if not live:
            raise FabricError(
                f"{name}: no RDMA port has a cable with a live other end "
                f"({', '.join(port.netdev for port in ports)})"
            )
    return _address(_facing(cabled, pair), pair)


def _worth_looking(every: Sequence[Sequence[Port]], wish: Wish) -> list[list[str]]:
    """Ports that are down and may be rails: all while no rail is known, then only twins of the main one."""
    known = sharing_rails([[port for port in ports if port.carrier] for ports in every])
    if len(known) >= wish.limit:
        return [[] for _ in every]
    return [
        [port.netdev for port in ports if not port.up and (not known or port.cable == known[0][rank].cable)]
        for rank, ports in enumerate(every)
    ]


def _facing(cabled: list[list[Port]], pair: _Pair) -> list[Rail]:
    """Ports that face each other, main rail first: by a shared subnet, else by their place on the card."""
    wish, link_local = pair.wish, not pair.wish.manage
    rails: list[Rail] = []
    if wish.names_main:
        # The main rail is among these ports alone; the others can only become the second rail.
        chosen = _chosen(cabled, pair)
        rails = (sharing_rails(chosen, link_local) or placed_rails(chosen, [], wish.networks))[:1]
        main = {port for rail in rails for port in rail}
        cabled = [[port for port in ports if port not in main] for ports in cabled]
    rails = (rails + sharing_rails(cabled, link_local))[: wish.limit]
    # Without managing, place only serves to say what is missing.
    while len(rails) < wish.limit and (wish.manage or not rails or wish.rails == "2"):
        placed = placed_rails(cabled, rails, wish.networks)
        if not placed:
            break
        rails.append(placed[0])
    if wish.rails == "2" and len(rails) < 2:
        seen = "; ".join(
            f"{name}: {', '.join(port.netdev for port in ports)}"
            for name, ports in zip(pair.names, cabled, strict=True)
        )
        raise FabricError(
            f"rails is 2, but only {len(rails)} pair of cabled RDMA ports was found ({seen}); use rails: auto"
        )
    # Whichever rail was found first: the same ports get the same place, and so the same subnet, in every run.
    return rails if wish.names_main else sorted(rails, key=lambda rail: rail[0].order)


def _chosen(cabled: Sequence[Sequence[Port]], pair: _Pair) -> list[list[Port]]:
    """The ports that may be the main rail's: where `fabric_netdev` or another's `fabric_peer` names one."""
    netdevs, peers = pair.wish.netdevs, pair.wish.peers
    found = []
    for rank, (name, ports) in enumerate(zip(pair.names, cabled, strict=True)):
        up = ", ".join(port.netdev for port in ports)
        netdev = netdevs[rank] if netdevs else None
        own = [port for port in ports if netdev in (None, port.netdev)]
        if not own:
            raise FabricError(f"fabric_netdev {netdev} is down on {name}; up RoCE ports: {up}")
        for address in {one for other, one in enumerate(peers) if one and other != rank}:
            own = [port for port in own if address in [one.split("/")[0] for one in port.addresses]]
            if not own:
                raise FabricError(
                    f"fabric_peer {address} is on no RoCE port of {name} that may be used: {up}"
                )
        found.append(own)
    return found


def _address(facing: list[Rail], pair: _Pair) -> list[Plan]:
    """Keep what is valid; give the rest an address, or say that it lacks one."""
    plans = [Plan() for _ in pair.names]
    for number, ends in enumerate(facing):
        for plan, port in zip(plans, _wanted_ports(number, ends, facing, pair), strict=True):
            plan.ports.append(port)
    sides = [",".join(rail[rank].hca for rail in facing) for rank in range(len(plans))]
    for rank, (plan, node) in enumerate(zip(plans, pair.nodes, strict=True)):
        ours, makers = node["network"]["netplan"].get(NETPLAN_FILE) or "", node["network"]["makers"]
        for port in plan.ports:
            port["service"] = makers[port["netdev"]]["service"]
            if not port["kept"] and port["service"] == "NetworkManager":
                plan.profiles.append({key: port[key] for key in ("netdev", "address", "mtu")})
        networkd = [port for port in plan.ports if port["service"] != "NetworkManager"]
        if any(not port["kept"] for port in networkd):
            mine = [port for port in networkd if not port["kept"] or f" {port['netdev']}:" in ours]
            plan.netplan = render_netplan(mine)
        for number, port in enumerate(plan.ports):
            others = [other.ports[number]["address"] for peer, other in enumerate(plans) if peer != rank]
            port["peers"] = [address.split("/")[0] for address in others]
        plan.summary = f"{len(facing)} rail{'s' if len(facing) != 1 else ''}: {' <-> '.join(sides)}"
        plan.warnings = [
            f"rail {number} uses a link-local address that changes at reboot"
            for number, port in enumerate(plan.ports)
            if ipaddress.IPv4Interface(port["address"]).network.overlaps(LINK_LOCAL)
        ]
    return plans


def _wanted_ports(number: int, ends: Rail, facing: Sequence[Rail], pair: _Pair) -> list[dict[str, Any]]:
    """Name, address and MTU that each end shall have."""
    wish, mtus = pair.wish, {port.mtu for port in ends}
    network = shared_network(ends, link_local=not wish.manage)
    if not wish.manage:
        _refuse_unready(number, ends, network, pair.names)
    keep = network is not None and len(mtus) == 1
    # Where only the MTU differs, the addresses that are there are as good as ours.
    free = None if network else _free_subnet(number, facing, pair)
    wanted = []
    for rank, port in enumerate(ends):
        address = address_in(port, network) if network else None
        wanted.append(
            {
                "rail": number,
                "netdev": port.netdev,
                "hca": port.hca,
                "address": address or (f"{free[rank + 1]}/{free.prefixlen}" if free else ""),
                "mtu": port.mtu if keep else wish.mtu,
                "kept": keep,
            }
        )
    return wanted


def _refuse_unready(
    number: int, ends: Rail, network: ipaddress.IPv4Network | None, names: Sequence[str]
) -> None:
    """Say what a rail that we must not touch lacks."""
    if network is None:
        where = ", ".join(
            f"{name} {port.netdev}: {', '.join(port.addresses) or 'no address'}"
            for name, port in zip(names, ends, strict=True)
        )
        raise FabricError(
            f"no CX7 subnet shared on rail {number} ({where}); give both ends one, or set fabric_manage: true"
        )
    if len({port.mtu for port in ends}) > 1:
        text = ", ".join(f"{name} {port.mtu}" for name, port in zip(names, ends, strict=True))
        raise FabricError(f"rail {number} MTU differs: {text}; set both to the same value")


def _free_subnet(number: int, facing: Sequence[Rail], pair: _Pair) -> ipaddress.IPv4Network:
    """The rail's subnet from the settings, refused when another port of any node already lives in it."""
    subnets = pair.wish.networks
    if number >= len(subnets):
        raise FabricError(f"fabric_subnets has {len(subnets)} entries, rail {number} needs one of its own")
    network = subnets[number]
    if number and network.overlaps(subnets[0]):
        listed = ", ".join(pair.wish.subnets)
        raise FabricError(f"rail 0 and rail {number} need different subnets (fabric_subnets: {listed})")
    for rank, (name, node) in enumerate(zip(pair.names, pair.nodes, strict=True)):
        own, rails = facing[number][rank].netdev, {rail[rank].netdev for rail in facing}
        ours = node["network"]["netplan"].get(NETPLAN_FILE) or ""
        for netdev, link in node["network"]["links"].items():
            clash = [a for a in link["addresses"] if ipaddress.IPv4Interface(a).network.overlaps(network)]
            # A port that our file addressed and that is no rail any more loses it with the new file.
            dropped = f" {netdev}:" in ours and netdev not in rails
            if clash and netdev != own and not dropped:
                raise FabricError(
                    f"fabric_subnets {network} overlaps {clash[0]} on {name} {netdev}; choose another subnet"
                )
    return network


def render_netplan(ports: Sequence[dict[str, Any]]) -> str:
    """Our netplan file. The renderer is named for each port, so that no other port changes hands."""
    lines = [
        "# Written by Twinserve (role fabric). Other files in this folder are left alone.",
        "network:",
        "  version: 2",
    ]
    lines.append("  ethernets:")
    for port in sorted(ports, key=lambda one: str(one["netdev"])):
        lines += [
            f"    {port['netdev']}:",
            "      renderer: networkd",
            "      dhcp4: false",
            "      link-local: []",
            f"      mtu: {port['mtu']}",
            f"      addresses: [{port['address']}]",
        ]
    return "\n".join(lines) + "\n"
