"""Which addresses a lab has: a /22 of 198.18.0.0/15 (RFC 2544), found from the lab's name."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from .errors import Refusal

_RANGE = ipaddress.IPv4Network("198.18.0.0/15")
_BLOCKS = list(_RANGE.subnets(new_prefix=22))


@dataclass(frozen=True)
class Network:
    """The addresses of one lab: one /24 for management, one for each rail, one spare."""

    block: int

    @property
    def block_network(self) -> ipaddress.IPv4Network:
        """The whole /22."""
        return _BLOCKS[self.block]

    def _subnet(self, index: int) -> ipaddress.IPv4Network:
        return list(self.block_network.subnets(new_prefix=24))[index]

    @property
    def gateway(self) -> str:
        """The controller's address, where packages, images and models are served."""
        return str(self._subnet(0)[1])

    def address(self, host_number: int) -> str:
        """The management address of host 1, 2, ..."""
        return str(self._subnet(0)[10 + host_number])

    def rail_address(self, rail: int, host_number: int) -> str:
        """The address of a host on rail 1 or 2, as `up --cabled` sets it."""
        return str(self._subnet(rail)[10 + host_number])


def preferred_block(name: str) -> int:
    """The block that a lab of this name takes when nobody else has it."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % len(_BLOCKS)


def choose(name: str, taken: Collection[int], remembered: int | None = None) -> Network:
    """A free block: the remembered one, else the preferred one, else the next free.

    Raises Refusal when all are taken.
    """
    first = preferred_block(name)
    candidates = [first, *((first + step) % len(_BLOCKS) for step in range(1, len(_BLOCKS)))]
    if remembered is not None:
        candidates.insert(0, remembered)
    for block in candidates:
        if block not in taken:
            return Network(block)
    raise Refusal("no free network is left in 198.18.0.0/15")


def blocks_in_use(addresses: Iterable[str]) -> set[int]:
    """The blocks that overlap with addresses in CIDR form that the machine already has."""
    used = set()
    for text in addresses:
        interface = ipaddress.ip_interface(text)
        if interface.version != 4 or not interface.network.overlaps(_RANGE):
            continue
        used |= {number for number, block in enumerate(_BLOCKS) if interface.network.overlaps(block)}
    return used
