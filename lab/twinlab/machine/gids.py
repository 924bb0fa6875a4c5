"""The GID table of a simulated RoCE port, by the rules of the kernel."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SLOTS = 255
EMPTY = "0000:0000:0000:0000:0000:0000:0000:0000"
V1, V2 = "IB/RoCE v1", "RoCE v2"
_MAPPED = "0000:0000:0000:0000:0000:ffff:"


@dataclass(frozen=True)
class Gid:
    """One entry: the address in long form, and the RoCE version that it is for."""

    value: str
    type: str


def from_address(address: str) -> str:
    """The GID of an IPv4 or IPv6 address."""
    parsed = ipaddress.ip_address(address)
    if parsed.version == 4:
        parsed = ipaddress.IPv6Address(f"::ffff:{address}")
    return parsed.exploded


def link_local(mac: str) -> str:
    """The GID that a port always has, made from its hardware address (EUI-64)."""
    part = [int(byte, 16) for byte in mac.split(":")]
    part[0] ^= 2
    words = [part[0] << 8 | part[1], part[2] << 8 | 0xFF, 0xFE00 | part[3], part[4] << 8 | part[5]]
    return ipaddress.IPv6Address("fe80::" + ":".join(f"{word:x}" for word in words)).exploded


def disturbed(table: dict[int, Gid], shift: int, v1_only: bool) -> dict[int, Gid]:
    """The table as a port shows it whose IPv4 entries lie `shift` slots higher, or exist for RoCE v1 only."""
    shown = {}
    for slot, entry in table.items():
        if not entry.value.startswith(_MAPPED):
            shown[slot] = entry
        elif entry.type == V1 or not v1_only:
            shown[slot + shift] = entry
    return shown


def update(
    table: dict[int, Gid], mac: str, addresses: Iterable[str], types: Sequence[str] = (V1, V2)
) -> dict[int, Gid]:
    """The table after the port's addresses became `addresses`.

    The first slots are the link-local GID.  Every address has an entry of each type that the card knows.
    Entries that stay keep their slot, a freed slot is a hole, and a new entry takes the lowest free one.
    """
    own = [Gid(link_local(mac), kind) for kind in types]
    wanted = list(own)
    for address in addresses:
        for kind in types:
            entry = Gid(from_address(address), kind)
            if entry not in wanted:
                wanted.append(entry)
    others = wanted[len(own) :]
    result = {slot: entry for slot, entry in table.items() if slot >= len(own) and entry in others}
    result |= dict(enumerate(own))
    for entry in others:
        if entry not in result.values():
            result[min(slot for slot in range(SLOTS) if slot not in result)] = entry
    return dict(sorted(result.items()))
