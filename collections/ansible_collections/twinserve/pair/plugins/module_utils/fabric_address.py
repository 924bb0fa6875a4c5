"""What the ends of one rail shall have: what is there where it works, else an address and an MTU. Pure.

Others' ends are kept, and the bare end of a rail gets an address in the subnet of the other; what cannot work
is refused (`Unfit`), or with `fabric_manage: true` mended by an address of our own subnets.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from .fabric_ports import Port, Rail, is_ours
from .fabric_wish import FabricError, Pair, Unfit
from .fabric_words import maker_name, mtu_differs, unshared
from .neighbours import lasting, neighbours, shared


@dataclass(frozen=True)
class Given:
    """What an end shall have: address with prefix length, MTU in bytes. `kept` when nothing is to be done.

    `more` are other addresses of the port that stay when it is set up anew.
    """

    address: str
    mtu: int
    kept: bool
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Case:
    """A rail, among all rails of the pair."""

    number: int
    ends: Rail
    rails: Sequence[Rail]
    pair: Pair


def settle(number: int, rails: Sequence[Rail], pair: Pair) -> list[Given]:
    """By rank. Raises Unfit for a rail that cannot work, FabricError for settings that cannot."""
    case, ends = _Case(number, rails[number], rails, pair), rails[number]
    addresses, mtu = _addresses(case), _mtu(case)
    given = []
    for port, address in zip(ends, addresses, strict=True):
        there = address in port.addresses and port.mtu == mtu
        # What is only set by hand is written down where we may, and where it is ours anyway. Not under a
        # running rank: a port starts anew with its file.
        loose = not port.stays(address) and (pair.wish.mends or port.ours) and not pair.serving
        kept = pair.wish.only_checks or (there and not loose)
        if port.bound and not kept:
            name = pair.names[ends.index(port)]
            raise Unfit(f"{name} {port.netdev} {port.bound}, so it is not given {address} with MTU {mtu}")
        more = tuple(
            one for one in port.further(address) if one.split("/")[0] not in _hosts(ends, port, addresses)
        )
        given.append(Given(address, mtu, kept, more))
    return given


def _hosts(ends: Rail, port: Port, addresses: Sequence[str]) -> set[str]:
    """What the other ends of the rail have, and are to have."""
    others = [(one, own) for one, own in zip(ends, addresses, strict=True) if one is not port]
    return {address.split("/")[0] for one, own in others for address in (own, *one.addresses)}


def _addresses(case: _Case) -> Sequence[str]:
    """Addresses that are there, one each; else those of a subnet that one end has; else of our own."""
    ends, wish = case.ends, case.pair.wish
    # Link-local ones carry a rank that runs, and are replaced once none does.
    if found := shared(ends, link_local=wish.only_checks or case.pair.serving):
        return found
    if wish.only_checks:
        raise Unfit(unshared(case.number, ends, case.pair))
    others = [rank for rank, port in enumerate(ends) if port.addressed_by_others]
    anchors = others or [rank for rank, port in enumerate(ends) if lasting(port.addresses)]
    if not (fits := shared([ends[rank] for rank in anchors], link_local=False)):
        if others and not wish.mends:
            raise Unfit(unshared(case.number, ends, case.pair))
        return _fresh(case)
    try:
        return _completed(case, dict(zip(anchors, fits, strict=True)))
    except Unfit:
        if not wish.mends:
            raise
        return _fresh(case)


def _completed(case: _Case, known: dict[int, str]) -> list[str]:
    """The addresses by rank that are `known`, and for each other end a free one in their subnet."""
    networks = [ipaddress.IPv4Interface(address).network for address in known.values()]
    narrow = max(networks, key=lambda network: network.prefixlen)
    anchor, found = min(known), dict(known)
    subnet = (
        f"rail {case.number}: the subnet {narrow} of {case.pair.names[anchor]} {case.ends[anchor].netdev}"
    )
    for rank, port in enumerate(case.ends):
        if rank in found:
            continue
        if clash := _clash(case, rank, narrow):
            raise Unfit(f"{subnet} overlaps {clash}")
        address = _free_address(case, rank, narrow, list(found.values()))
        if address is None:
            where = f"{case.pair.names[rank]} {port.netdev}"
            raise Unfit(f"{subnet} has no free address for {where}")
        found[rank] = address
    return [found[rank] for rank in range(len(case.ends))]


def _free_address(case: _Case, rank: int, network: ipaddress.IPv4Network, known: Sequence[str]) -> str | None:
    """An address of that subnet that no node has, the rank's own number if possible."""
    taken = {
        address.split("/")[0]
        for peer, node in enumerate(case.pair.nodes)
        for netdev, link in node["network"]["links"].items()
        for address in link["addresses"]
        if not _is_dropped(case, peer, netdev)
    }
    own = [network[rank + 1]] if network.prefixlen <= 30 and rank + 2 < network.num_addresses else []
    for host in chain(own, network.hosts()):
        address = f"{host}/{network.prefixlen}"
        if str(host) not in taken and all(neighbours(address, other) for other in known):
            return address
    return None


def _is_dropped(case: _Case, rank: int, netdev: str) -> bool:
    """A port that we addressed and that is no rail any more loses it with the new file."""
    rails = {rail[rank].netdev for rail in case.rails}
    return netdev not in rails and is_ours(netdev, case.pair.nodes[rank]["network"])


def _fresh(case: _Case) -> list[str]:
    """Addresses of the rail's own subnet in the settings, refused when it is in use elsewhere."""
    subnets, number = case.pair.wish.networks, case.number
    if number >= len(subnets):
        raise FabricError(f"fabric_subnets has {len(subnets)} entries, rail {number} needs one of its own")
    network = subnets[number]
    if number and network.overlaps(subnets[0]):
        listed = ", ".join(case.pair.wish.subnets)
        raise FabricError(f"rail 0 and rail {number} need different subnets (fabric_subnets: {listed})")
    if len(case.ends) > network.num_addresses - 2:
        raise FabricError(f"fabric_subnets: {network} has no room for {len(case.ends)} hosts")
    for rank in range(len(case.ends)):
        if clash := _clash(case, rank, network):
            raise FabricError(f"fabric_subnets {network} overlaps {clash}; choose another subnet")
    addresses = [f"{network[rank + 1]}/{network.prefixlen}" for rank in range(len(case.ends))]
    _refuse_remnants(case, addresses)
    return addresses


def _refuse_remnants(case: _Case, addresses: Sequence[str]) -> None:
    """Addresses in netplan files of others stay beside ours, and may be just what the other end needs."""
    for rank, (name, port) in enumerate(zip(case.pair.names, case.ends, strict=True)):
        needed = [one.split("/")[0] for peer, one in enumerate(addresses) if peer != rank]
        if port.ours or port.maker.service == "NetworkManager":
            continue
        for address in port.addresses:
            if address.split("/")[0] in needed and port.stays(address):
                raise FabricError(
                    f"{name} {port.netdev} has {address} from {maker_name(port)}, which the other end of "
                    f"rail {case.number} needs: take it out there, or choose another subnet (fabric_subnets)"
                )


def _clash(case: _Case, rank: int, network: ipaddress.IPv4Network) -> str | None:
    """Another port of the node that lives in this subnet, with its address; a rail of ours may be one."""
    pair, own = case.pair, case.ends[rank].netdev
    rails = {rail[rank].netdev: number for number, rail in enumerate(case.rails)}
    for netdev, link in pair.nodes[rank]["network"]["links"].items():
        if netdev == own or _is_dropped(case, rank, netdev):
            continue
        for address in link["addresses"]:
            if ipaddress.IPv4Interface(address).network.overlaps(network):
                where = f"{address} on {pair.names[rank]} {netdev}"
                if netdev not in rails:
                    return where
                one, other = sorted((case.number, rails[netdev]))
                return f"{where} (rail {one} and rail {other} need different subnets)"
    return None


def _mtu(case: _Case) -> int:
    """What others set, where that is one value for all; else ours. Raises Unfit where that may not be."""
    wish, present = case.pair.wish, {port.mtu for port in case.ends}
    if wish.only_checks:
        set_by_others = present
    else:
        others = [port for port in case.ends if port.addressed_by_others]
        # To what is set by hand nobody comes back after a reboot, so it may as well get ours.
        steady = [port for port in others if any(port.stays(one) for one in lasting(port.addresses))]
        set_by_others = {port.mtu for port in (steady if wish.mends else others)}
    if len(set_by_others) == 1:
        return set_by_others.pop()
    if set_by_others and not wish.mends:
        raise Unfit(mtu_differs(case.number, case.ends, case.pair.names))
    # A port starts anew with another MTU, which would end what runs over it.
    return present.pop() if len(present) == 1 and case.pair.serving else wish.mtu
