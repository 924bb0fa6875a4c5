"""GID tables of RDMA ports: which index carries the RoCE v2 GID of an IPv4 address.

Indexes move (reboot, cable, netplan), so they are looked up by value and type each time they are needed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .kernel_files import names, read_attr

ROCE_V2 = "RoCE v2"


@dataclass(frozen=True)
class Gid:
    """One filled entry of a GID table. `gid` is 8 groups of 4 hex digits, `type` the kernel's own word.

    `netdev` is the port that it belongs to: the device's own, or a VLAN on it; empty where not told.
    """

    index: int
    gid: str
    type: str
    netdev: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return the entry as the agent reports it."""
        return {"index": self.index, "gid": self.gid, "type": self.type, "netdev": self.netdev}


def mapped(address: str) -> str:
    """Return the IPv4-mapped GID of an IPv4 address, in full notation (ValueError when it is none)."""
    plain = ipaddress.IPv4Address(address.partition("/")[0])
    return ipaddress.IPv6Address(f"::ffff:{plain}").exploded


def find_v2(table: Iterable[Gid], address: str) -> Gid | None:
    """Return the entry that is RoCE v2 and has this IPv4 address; a link-local v2 entry is not enough."""
    wanted = ipaddress.IPv6Address(mapped(address))
    for entry in table:
        if entry.type == ROCE_V2 and ipaddress.IPv6Address(entry.gid) == wanted:
            return entry
    return None


def describe(table: Iterable[Gid]) -> str:
    """Return a table in short for people: `0 link-local v1, 3 198.51.100.1 v2`, or `empty`."""
    words = [f"{entry.index} {_value(entry.gid)} {_version(entry.type)}" for entry in table]
    return ", ".join(words) or "empty"


def no_v2(hca: str, address: str, table: Iterable[Gid]) -> str:
    """Say that a device has no RoCE v2 GID for its address (with or without prefix length)."""
    return f"{hca} has no RoCE v2 GID for {address.partition('/')[0]} (found: {describe(table)})"


def read_table(port: Path) -> list[Gid]:
    """Read the filled entries of a port directory's GID table (`.../ports/1`), in index order.

    Each slot's `gids/N` is read (holes are normal, so no early stop), `types` and `ndevs` of filled ones.
    """
    table: list[Gid] = []
    types, ndevs = f"{port}/gid_attrs/types", f"{port}/gid_attrs/ndevs"
    for index in sorted(int(name) for name in names(port / "gids") if name.isdigit()):
        value = read_attr(f"{port}/gids/{index}")
        if not value or not value.strip("0:"):
            continue
        kind = read_attr(f"{types}/{index}")
        if kind is None:
            continue
        table.append(Gid(index, value, kind, read_attr(f"{ndevs}/{index}") or ""))
    return table


def _value(gid: str) -> str:
    address = ipaddress.IPv6Address(gid)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return "link-local" if address.is_link_local else str(address)


def _version(kind: str) -> str:
    return "v2" if kind == ROCE_V2 else "v1"
