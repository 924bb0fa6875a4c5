"""Which ports of a pair become its rails, before anybody looks at whether they can work as they are. Pure."""

from __future__ import annotations

from .fabric_ports import Port, Rail, has_twin, placed_rails, read_ports
from .fabric_wish import FabricError, Pair
from .neighbours import by_pci, facing, is_twin, without
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
    known = facing(every, link_local=False)
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
    cabled = [[port for port in ports if port.up] for ports in every]
    for name, ports, live in zip(pair.names, every, cabled, strict=True):
        if not live:
            raise FabricError(_dark(name, ports))
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
            f"({_seen(cabled, pair)}); use rails: auto"
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
