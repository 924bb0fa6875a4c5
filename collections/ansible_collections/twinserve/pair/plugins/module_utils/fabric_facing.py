"""Which ports of a pair become its rails, before anybody looks at whether they can work as they are. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .fabric_ports import Port, Rail, has_twin, placed_rails, read_ports
from .fabric_wish import FabricError, Pair
from .neighbours import by_pci, facing, is_twin, lasting, without
from .rails import rank_name
from .selection import SelectionError, allowed, select_devices, unmatched

_Ports = list[list[Port]]


def usable_ports(pair: Pair) -> _Ports:
    """The RDMA ports of each node that the settings allow, cabled or not."""
    every = []
    for rank, (name, node) in enumerate(zip(pair.names, pair.nodes, strict=True)):
        ports = read_ports(node)
        if not ports:
            raise FabricError(
                f"{name} has no RDMA network device: load mlx5_ib, or check the ConnectX card (lspci)"
            )
        try:
            every.append(allowed(ports, pair.of(rank, pair.wish.hcas)))
        except SelectionError as error:
            raise FabricError(f"{name}: {error}") from error
    return every


def worth_looking(every: _Ports, pair: Pair) -> list[list[str]]:
    """Ports that are down and may be rails: all while no rail is known, then only what may be the second.

    Only a port that is up knows whether a cable is in it.
    """
    every = [[port for port in ports if closed(port, pair) is None] for ports in every]
    # Under a running rank there is no choice any more.
    known = facing(every if pair.serving else beside_management(every, pair), link_local=False)
    if len(known) >= pair.wish.limit:
        return [[] for _ in every]
    asleep = []
    for rank, ports in enumerate(every):
        down = [port for port in ports if not port.enabled]
        if known and has_twin(known[0][rank], ports):
            down = [port for port in down if is_twin(known[0][rank], port)]
        asleep.append([port.netdev for port in down])
    return asleep


def choose_rails(every: _Ports, pair: Pair) -> list[Rail]:
    """Ports that face each other, main rail first: by their addresses, else by their place on the card."""
    wish = pair.wish
    cabled = _cabled(every, pair)
    for name, ports, live in zip(pair.names, every, cabled, strict=True):
        if not live:
            raise FabricError(_not_free(name, ports, pair) or _dark(name, ports))
    cabled = beside_management(cabled, pair)
    main = _named_main(every, cabled, pair)
    beside = facing([without(main, rank, ports) for rank, ports in enumerate(cabled)], wish.only_checks)
    if main:
        beside.sort(key=lambda rail: not is_twin(main[0][0], rail[0]))
    rails = (main + beside)[: wish.limit]
    while len(rails) < wish.limit:
        if not (placed := _placed(every, cabled, rails, pair)):
            break
        rails.append(placed[0])
    if wish.rails == "2" and len(rails) < 2:
        raise FabricError(
            f"rails is 2, but only {len(rails)} pair of cabled RDMA ports was found "
            f"({'; '.join([_seen(cabled, pair), *told_closed(every, pair)])}); use rails: auto"
        )
    if alone := unmatched(cabled, [pair.of(rank, wish.hcas) for rank in range(len(cabled))], rails):
        raise FabricError(f"{'; '.join(alone)}; take it out of nccl_ib_hca, or give both ends a subnet")
    if main or wish.only_checks:
        return rails
    # Whichever rail was found first: the same ports get the same place, and so the same subnet, in every run.
    return sorted(rails, key=lambda rail: by_pci(cabled[0]).index(rail[0]))


def dark_twins(rails: list[Rail], every: _Ports) -> Rail | None:
    """The lone rail's twins, when they have no live other end, although one cable carries both."""
    if len(rails) != 1:
        return None
    twins = [
        next((one for one in ports if is_twin(port, one)), None)
        for port, ports in zip(rails[0], every, strict=True)
    ]
    found = tuple(twin for twin in twins if twin)
    return found if len(found) == len(twins) and not all(one.up for one in found) else None


def _cabled(every: _Ports, pair: Pair) -> _Ports:
    """The live ports that are not somebody's."""
    return [[port for port in ports if port.up and closed(port, pair) is None] for ports in every]


def apart(every: _Ports, pair: Pair) -> list[list[str]]:
    """The devices by rank that lead to a network by which the nodes are reached, and are no rails."""
    cabled = _cabled(every, pair)
    return [
        [port.hca for port in own if port not in rest]
        for own, rest in zip(cabled, beside_management(cabled, pair), strict=True)
    ]


def closed(port: Port, pair: Pair) -> str | None:
    """Why a port without an IPv4 address is left to whoever has it, in words; None for one that is free.

    With `fabric_manage: true` only what another port lives on is left alone.
    """
    if pair.wish.only_checks or lasting(port.addresses):
        return None
    return port.bound or (None if pair.wish.mends else port.claimed)


def told_closed(every: _Ports, pair: Pair) -> list[str]:
    """The live ports that are no rails because they are somebody's, with why."""
    return [
        f"{name} {port.netdev} {why}: no rail"
        for name, ports in zip(pair.names, every, strict=True)
        for port in ports
        if port.up and (why := closed(port, pair))
    ]


def beside_management(ports: _Ports, pair: Pair) -> _Ports:
    """Without the cables by which the nodes are reached, where each node has another one.

    They may be a network that many share. Where a setting names one of them, where it is a rail of ours, or
    where some node has no other, the nodes are reached by their rail.
    """
    ways = [[port for port in own if is_way(rank, port, pair)] for rank, own in enumerate(ports)]
    if any(_is_named(rank, port, pair) for rank, own in enumerate(ways) for port in own):
        return ports
    rest = [
        [port for port in own if not any(port == way or is_twin(way, port) for way in found)]
        for own, found in zip(ports, ways, strict=True)
    ]
    return rest if all(rest) else ports


def is_way(rank: int, port: Port, pair: Pair) -> bool:
    """Whether the port has an address by which its node is reached from outside."""
    given = pair.of(rank, pair.management)
    return bool(given) and not set(_plain(port)).isdisjoint(pair.addresses_of(str(given)))


def _is_named(rank: int, port: Port, pair: Pair) -> bool:
    """Whether a setting says that this port is to be a rail, or we made it one."""
    listed = pair.of(rank, pair.wish.hcas)
    if (
        port.ours
        or port.netdev == pair.of(rank, pair.wish.netdevs)
        or (listed and not listed.strip().startswith("^"))
    ):
        return True
    peers = [peer for setter, peer in enumerate(pair.wish.peers) if peer and setter != rank]
    return any(not set(_plain(port)).isdisjoint(pair.addresses_of(peer)) for peer in peers)


def told_ways(every: _Ports, rails: Sequence[Rail], pair: Pair) -> list[str]:
    """RDMA ports by which a node is reached: whether they are rails all the same."""
    said = []
    for rank, (name, ports) in enumerate(zip(pair.names, every, strict=True)):
        for port in (port for port in ports if is_way(rank, port, pair)):
            text = f"{name} is reached by {port.netdev} ({pair.of(rank, pair.management)})"
            number = next((number for number, rail in enumerate(rails) if rail[rank] == port), None)
            if number is None:
                said.append(f"{text}: no rail; fabric_netdev: {port.netdev} makes it one")
            else:
                said.append(f"{text}, which is rail {number}")
    return said


def _plain(port: Port) -> list[str]:
    return [address.split("/")[0] for address in port.addresses]


def _not_free(name: str, ports: list[Port], pair: Pair) -> str | None:
    """All that have a cable are somebody's."""
    why = [f"{port.netdev} {text}" for port in ports if port.up and (text := closed(port, pair))]
    if not why:
        return None
    advice = "take it out of there, or use another cable"
    if not any(port.bound for port in ports if port.up):
        advice = f"give both ends an IPv4 address, or {pair.wish.hint}"
    return f"{name}: no RDMA port is free for a rail: {'; '.join(why)}; {advice}"


def _dark(name: str, ports: list[Port]) -> str:
    seen = ", ".join(port.netdev for port in ports)
    text = f"{name}: no RDMA port has a cable with a live other end ({seen})"
    # Only with `fabric_manage: false`, which leaves them so.
    asleep = [port.netdev for port in ports if not port.enabled]
    return f"{text}; set down, and left so by fabric_manage: false: {', '.join(asleep)}" if asleep else text


def _placed(every: _Ports, cabled: _Ports, rails: list[Rail], pair: Pair) -> list[Rail]:
    """A card whose cables have no twins, as in a Station, has its second rail on another cable."""
    twins = rails and any(has_twin(port, ports) for port, ports in zip(rails[0], every, strict=True))
    return placed_rails(cabled, rails, pair.wish.networks, twins_only=bool(twins))


def _seen(cabled: _Ports, pair: Pair) -> str:
    return "; ".join(
        f"{name}: {', '.join(port.netdev for port in ports)}"
        for name, ports in zip(pair.names, cabled, strict=True)
    )


def _named_main(every: _Ports, cabled: _Ports, pair: Pair) -> list[Rail]:
    """The main rail where it is said rather than found; the others can only become the second rail."""
    chosen = [_chosen(rank, every[rank], ports, pair) for rank, ports in enumerate(cabled)]
    if chosen == cabled:
        return []
    return (facing(chosen, pair.wish.only_checks) or placed_rails(chosen, [], pair.wish.networks, True))[:1]


def _chosen(rank: int, every: list[Port], cabled: list[Port], pair: Pair) -> list[Port]:
    """The rank's ports that may be the main rail's: `fabric_netdev`, or what others' `fabric_peer` names."""
    name, netdev = pair.names[rank], pair.of(rank, pair.wish.netdevs)
    try:
        select_devices(every, None, netdev, rank_name(rank))
    except SelectionError as error:
        raise FabricError(f"fabric_netdev on {name}: {error}") from error
    own = [port for port in cabled if netdev in (None, port.netdev)]
    if not own and (text := _not_free(name, [port for port in every if port.netdev == netdev], pair)):
        raise FabricError(f"fabric_netdev on {text}")
    for setter, given in enumerate(pair.wish.peers):
        if given and setter != rank and (addresses := _rail_addresses(given, setter, rank, pair)):
            own = [port for port in own if {one.split("/")[0] for one in port.addresses} & addresses]
            if not own:
                up = ", ".join(port.netdev for port in cabled)
                raise FabricError(f"fabric_peer {given} is on no RoCE port of {name} that may be used: {up}")
    return own


def _rail_addresses(given: str, setter: int, rank: int, pair: Pair) -> set[str]:
    """The addresses that `fabric_peer` says; none when it is the node's address on another network."""
    addresses = set(pair.addresses_of(given))
    if not addresses:
        raise FabricError(
            f"{pair.names[setter]}: fabric_peer {given} is no name that {pair.names[0]} can resolve: "
            f"add it to /etc/hosts on {pair.names[0]}, or give the address"
        )
    node = pair.nodes[rank]
    rdma = {device["netdev"] for device in node["devices"]}
    beside = {
        address.split("/")[0]
        for netdev, link in node["network"]["links"].items()
        for address in link["addresses"]
        if netdev not in rdma
    }
    return set() if addresses & beside else addresses
