"""Which RDMA ports face each other: one judgement for the role that plans and the supervisor that starts.

Ports face each other when each has an address that the others see as a neighbour's: in each other's subnet,
and not the same one. Prefix lengths may differ. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Protocol, TypeVar

LINK_LOCAL = ipaddress.IPv4Network("169.254.0.0/16")


class End(Protocol):
    """What may be one end of a rail. `addresses` have their prefix length; `up` with a live other end."""

    @property
    def hca(self) -> str: ...  # noqa: D102
    @property
    def netdev(self) -> str: ...  # noqa: D102
    @property
    def pci(self) -> str: ...  # noqa: D102
    @property
    def addresses(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def up(self) -> bool: ...  # noqa: D102


AnyEnd = TypeVar("AnyEnd", bound=End)


def is_link_local(address: str) -> bool:
    """Whether the address is one that ports give themselves, another at each start."""
    return ipaddress.IPv4Interface(address).ip in LINK_LOCAL


def lasting(addresses: Sequence[str]) -> list[str]:
    """Those that somebody gave: all but link-local ones."""
    return [address for address in addresses if not is_link_local(address)]


def neighbours(one: str, other: str) -> bool:
    """Whether each of two addresses (with prefix length) is in the other's subnet, and they differ."""
    a, b = ipaddress.IPv4Interface(one), ipaddress.IPv4Interface(other)
    return a.ip != b.ip and a.ip in b.network and b.ip in a.network


def shared(ends: Sequence[End], link_local: bool = True) -> tuple[str, ...] | None:
    """One address of each end, all of them neighbours; link-local ones are the last choice, if one at all."""
    choices = [tuple(lasting(end.addresses)) for end in ends]
    if found := _chain(choices):
        return found
    return _chain([end.addresses for end in ends]) if link_local else None


def _chain(choices: Sequence[Sequence[str]], so_far: tuple[str, ...] = ()) -> tuple[str, ...] | None:
    if not choices:
        return so_far
    for address in choices[0]:
        fits = all(neighbours(address, known) for known in so_far)
        if fits and (found := _chain(choices[1:], (*so_far, address))):
            return found
    return None


def facing(
    ports: Sequence[Sequence[AnyEnd]], link_local: bool = True, mains: Sequence[str | None] = ()
) -> list[tuple[AnyEnd, ...]]:
    """The ports (by rank) that face each other, one of each rank: the main rail, its twins, other cables.

    The main rail is that of the ports which `mains` names, else the one that comes first by the head's PCI
    addresses; several in one subnet pair in that order.
    """
    rails: list[tuple[AnyEnd, ...]] = []
    for local in (False, True) if link_local else (False,):
        for port in without(rails, 0, by_pci(ports[0])):
            ends = [port] if port.up else []
            for rank, others in enumerate(ports[1:], start=1):
                free = (one for one in without(rails, rank, by_pci(others)) if one.up)
                ends += [one for one in free if ends and shared([*ends, one], local)][:1]
            if len(ends) == len(ports) and shared(ends, local):
                rails.append(tuple(ends))
    if not rails:
        return []
    main = next((rail for rail in rails if _is_named(rail, mains)), rails[0])
    rest = [rail for rail in rails if rail is not main]
    return [main, *sorted(rest, key=lambda rail: not is_twin(main[0], rail[0]))]


def _is_named(rail: Sequence[End], mains: Sequence[str | None]) -> bool:
    return all(name in (None, end.netdev) for end, name in zip(rail, mains, strict=False))


def without(rails: Sequence[tuple[AnyEnd, ...]], rank: int, ports: Sequence[AnyEnd]) -> list[AnyEnd]:
    """The ports of a rank that are in none of the rails: bare ports of two nodes may look the same."""
    return [port for port in ports if all(port != rail[rank] for rail in rails)]


def by_pci(ports: Sequence[AnyEnd]) -> list[AnyEnd]:
    """In the order of their PCI addresses, which a reboot does not change."""
    return sorted(ports, key=lambda port: (port.pci, port.hca))


def is_twin(one: End, other: End) -> bool:
    """One port of a card shows up in two PCIe domains, with the same tail (`f1np1`) in both names."""
    tail = one.netdev.rpartition("s0")[2] if "s0" in one.netdev else None
    same_function = one.pci.partition(":")[2] == other.pci.partition(":")[2]
    same_tail = tail is not None and other.netdev.endswith(f"s0{tail}")
    return one.pci != other.pci and (same_function or same_tail)
