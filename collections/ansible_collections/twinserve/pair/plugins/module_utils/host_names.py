"""Names of hosts: what a node takes them for, and where the head reaches a worker that is given by one."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Way:
    """Where the head reaches a node for control. `note` says that it is not what was given, and why."""

    address: str
    note: str = ""
    fault: str = ""


def resolve(names: Iterable[str]) -> dict[str, list[str]]:
    """The IPv4 addresses of each name as programs on this node see them; an unknown name has none."""
    return {name: _addresses(name) for name in names}


def to_resolve(given: Iterable[str | None]) -> list[str]:
    """Those of the given addresses that are names, each once."""
    return sorted({one for one in given if one and not _is_address(one)})


def way(given: str, names: tuple[str, str], head: Mapping[str, Any], worker: Mapping[str, Any]) -> Way:
    """How the head, first of `names`, reaches the worker, given by an address or a name; from both probes.

    A name holds when the head takes it for one of the worker's own addresses. Else the worker's address in a
    network that both share beside the rails is as good.
    """
    if _is_address(given):
        return Way(given)
    known = (head.get("resolved") or {}).get(given) or []
    if set(known) & {str(one.ip) for one in _interfaces(worker, rails=True)}:
        return Way(given)
    head_name, name = names
    why = f"{head_name} does not know the name {given}"
    if known:
        why = f"{head_name} takes the name {given} for {', '.join(known)}, which {name} does not have"
    if shared := _shared(head, worker):
        return Way(shared, note=f"{why}: it reaches {name} at {shared}")
    both = f"an address that {head_name} can use too"
    cure = f"set ansible_host of {name} to {both}, or name it in its /etc/hosts"
    return Way(given, fault=f"{why}, and shares no network with {name} beside the rails: {cure}")


def _shared(head: Mapping[str, Any], worker: Mapping[str, Any]) -> str | None:
    mine, theirs = (list(_interfaces(node, rails=False)) for node in (head, worker))
    # Networks that each machine makes for itself, such as docker's, have the same addresses everywhere.
    everywhere = {one.ip for one in mine} & {one.ip for one in theirs}
    return next(
        (
            str(other.ip)
            for own in mine
            for other in theirs
            if other.ip in own.network and own.ip in other.network and not {own.ip, other.ip} & everywhere
        ),
        None,
    )


def _interfaces(node: Mapping[str, Any], rails: bool) -> Iterator[ipaddress.IPv4Interface]:
    """Addresses by which others can reach the node; those of RDMA ports only when asked for."""
    links = (node.get("network") or {}).get("links") or {}
    rdma = {device["netdev"] for device in node.get("devices") or []}
    for netdev, link in links.items():
        for address in link["addresses"]:
            interface = ipaddress.IPv4Interface(address)
            inward = interface.is_loopback or interface.is_link_local
            if link["carrier"] and not inward and (rails or netdev not in rdma):
                yield interface


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _addresses(name: str) -> list[str]:
    try:
        found: Sequence[Any] = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
