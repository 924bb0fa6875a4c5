"""Sentences on the link, for people: what was found and who made it, and what is wrong with it. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from itertools import combinations

from .fabric_ports import Port, Rail
from .fabric_wish import Pair
from .neighbours import is_link_local, lasting
from .rails import rank_name

# What lets a change through that waits.
NEXT = "playbooks/stop.yml, then playbooks/fabric.yml"


def found_end(rank: int, port: Port, address: str | None) -> str:
    """E.g. `head enp1s0f0np0: 192.168.100.10/24, MTU 1500, from netplan (/etc/netplan/40-cx7.yaml)`."""
    shown = [address] if address in port.addresses else list(port.addresses)
    return f"{rank_name(rank)} {port.netdev}: " + ", ".join(
        [*(str(one) for one in shown or ["no address"]), f"MTU {port.mtu}", *_origin(port, shown)]
    )


def _origin(port: Port, shown: Sequence[str | None]) -> Iterable[str]:
    """Where the addresses come from; of a bare port who has it for now."""
    made = port.maker
    if shown and all(address in made.by_hand for address in shown):
        yield "set by hand"
    elif made.profile or made.files:
        yield f"{'from ' if shown else ''}{maker_name(port)}"


def maker_name(port: Port) -> str:
    """Who configured the port, and where that is written."""
    made, files = port.maker, ", ".join(port.maker.files)
    if port.ours:
        return f"Twinserve ({files})"
    if made.service == "NetworkManager" and not str(made.profile).startswith("netplan-"):
        return f'NetworkManager profile "{made.profile}" ({files})'
    if made.service is None:
        return f"ifupdown ({files})"
    generated = str(made.profile).startswith(("netplan-", "10-netplan-"))
    return f"{'netplan' if generated else 'systemd-networkd'} ({files})"


def fleeting(name: str, port: Port, address: str, cure: str) -> str | None:
    """Warn of an address that is gone after a reboot; link-local ones are told otherwise."""
    if port.stays(address) or is_link_local(address):
        return None
    by_hand = address in port.maker.by_hand
    how = "set by hand" if by_hand else f"from {maker_name(port)}"
    # One that waits for DHCP takes away what others set, after the best part of a minute.
    sooner = f", or when {maker_name(port)} takes it away" if by_hand and port.maker.profile else ""
    rest = f"it is gone after a reboot{sooner}; {cure}"
    return f"{name} {port.netdev} has {address} {how}: {rest}"


def losing(name: str, port: Port, lost: Sequence[str]) -> str:
    """What was set by hand on a port does not outlive that the port is set up anew."""
    return (
        f"{name} {port.netdev} is set up anew and loses what was set by hand: {', '.join(lost)}; "
        "set it again, or write it into a file"
    )


def no_carrier(ends: Rail, pair: Pair) -> str:
    """Which ends have no live other end."""
    dark = [f"{name} {port.netdev}" for name, port in zip(pair.names, ends, strict=True) if not port.up]
    return f"no carrier on {' and '.join(dark)}"


def unshared(number: int, ends: Rail, pair: Pair) -> str:
    """Why the ends of a rail are no neighbours, with what each has."""
    start = f"no CX7 subnet shared by {pair.ranks} on rail {number}"
    return f"{start}: {_clash(ends, pair.names) or _what_each_has(ends, pair.names)}"


def _clash(ends: Rail, names: Sequence[str]) -> str | None:
    """Addresses that nearly fit: the same one twice, or one end with a subnet that is too small."""
    for (name, port), (peer, other) in combinations(zip(names, ends, strict=True), 2):
        for one in lasting(port.addresses):
            for two in lasting(other.addresses):
                a, b = ipaddress.IPv4Interface(one), ipaddress.IPv4Interface(two)
                if a.ip == b.ip:
                    return f"{name} {port.netdev} and {peer} {other.netdev} both have {a.ip}"
                if b.ip in a.network and a.ip not in b.network:
                    return f"{peer} {other.netdev} has {two}, which leaves out {one} of {name} {port.netdev}"
                if a.ip in b.network and b.ip not in a.network:
                    return f"{name} {port.netdev} has {one}, which leaves out {two} of {peer} {other.netdev}"
    return None


def _what_each_has(ends: Rail, names: Sequence[str]) -> str:
    has = (
        f"{name} {port.netdev} has {' and '.join(port.addresses) or 'no address'}"
        for name, port in zip(names, ends, strict=True)
    )
    return ", ".join(has)


def mtu_differs(number: int, ends: Rail, names: Sequence[str]) -> str:
    """The MTUs by rank, and the ports by name."""
    seen = ", ".join(f"{rank_name(rank)} {port.mtu}" for rank, port in enumerate(ends))
    ports = ", ".join(f"{name} {port.netdev}" for name, port in zip(names, ends, strict=True))
    return f"rail {number} MTU differs: {seen}; set both to the same value ({ports})"


def lacking(ends: Rail, wanted: Sequence[tuple[str, int]], names: Sequence[str]) -> str:
    """What ports would get (address with prefix length, MTU in bytes), and why they do not get it now."""
    lacks = []
    for name, port, (address, mtu) in zip(names, ends, wanted, strict=True):
        missing = [address] * (address not in port.addresses) + [f"MTU {mtu}"] * (port.mtu != mtu)
        if missing:
            lacks.append(f"{name} {port.netdev} lacks {' and '.join(missing)}")
    return f"{', '.join(lacks)}, which is not written under a running rank: run {NEXT}"


def not_used(number: int, ends: Rail) -> str:
    """The warning for a further rail that the pair does without."""
    sides = (f"{port.hca} ({_plain(port)}, MTU {port.mtu}{'' if port.up else ', down'})" for port in ends)
    return f"rail {number} {' <-> '.join(sides)} does not reach the peer: not used"


def _plain(port: Port) -> str:
    return port.addresses[0].split("/")[0] if port.addresses else "-"


def over_the_lan(pair: Pair, given: str, rank: int, rail_address: str) -> str | None:
    """Say so when a worker is reached over a port without RDMA: the link has an address of its own."""
    wanted = pair.addresses_of(given)
    links, head = pair.nodes[rank]["network"]["links"], pair.nodes[0]["network"]["links"]
    own = {address.split("/")[0]: netdev for netdev, link in links.items() for address in link["addresses"]}
    rdma = [{device["netdev"] for device in node["devices"]} for node in (pair.nodes[0], pair.nodes[rank])]
    for address in wanted:
        if own.get(address) in (None, *rdma[1]):
            continue
        for netdev, link in head.items():
            networks = [ipaddress.IPv4Interface(one).network for one in link["addresses"]]
            if netdev not in rdma[0] and any(ipaddress.IPv4Address(address) in one for one in networks):
                return (
                    f"{rank_name(rank)} {given} is reached over {netdev}, not a CX7 port: "
                    f"using {rail_address.split('/')[0]} for the fabric"
                )
    return None
