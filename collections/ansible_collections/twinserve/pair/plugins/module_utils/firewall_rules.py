"""The rules that keep the engine's ports to the pair, as nft reads them: pure.

They only drop, and only the opening of a connection, so that they sit beside whatever rules others have, and
need no connection tracking. Engines listen on random ports, which the kernel takes from its range for them,
so the whole range is closed, not a list of ports.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

TABLE = "inet twinserve"
FILE = "/etc/twinserve/firewall.nft"
UNIT = "/etc/systemd/system/twinserve-firewall.service"
# Where RoCE v2 arrives. Network cards keep it from the kernel; a driver in software does not.
ROCE = 4791
_OPENS = "tcp flags & (fin | syn | rst | ack) == syn"


@dataclass(frozen=True)
class Wish:
    """What a node lets in, peers on its rails (netdevs) and all on the open ports, and what it closes."""

    rails: Collection[str]
    peers: Collection[str]
    open_ports: Collection[int]
    closed_ports: Collection[int]
    random_ports: tuple[int, int]


def render(wish: Wish) -> str:
    """The whole file. It replaces the table in one step: there is no moment without rules."""
    first, last = wish.random_ports
    named = [port for port in sorted(set(wish.closed_ports)) if not first <= port <= last]
    closed = ", ".join([*map(str, named), f"{first}-{last}"])
    netdevs = ", ".join(f'"{name}"' for name in sorted(set(wish.rails)))
    peers = ", ".join(sorted(set(wish.peers)))
    ports = ", ".join(map(str, sorted(set(wish.open_ports))))
    rules = [
        _rule('iifname "lo" accept', "this machine itself"),
        _rule(f"iifname {{ {netdevs} }} ip saddr {{ {peers} }} accept", "the other ranks"),
        _rule(f"tcp dport {{ {ports} }} accept", "ssh, and what is open to all"),
        _rule(f"tcp dport {{ {closed} }} {_OPENS} counter drop", "what the engine listens on"),
        _rule(f"udp dport {ROCE} counter drop", "RoCE"),
    ]
    return (
        "#\n# Ansible managed\n#\n"
        "# Before the filters of others (priority filter), which still judge all that is accepted here.\n"
        f"table {TABLE}\ndelete table {TABLE}\ntable {TABLE} {{\n\tchain input {{\n"
        "\t\ttype filter hook input priority filter - 5; policy accept;\n"
        f"{''.join(rules)}\t}}\n}}\n"
    )


def _rule(rule: str, why: str) -> str:
    """One line. Its comment tells a reader why and a program what: nft lists comments as they are written."""
    return f'\t\t{rule} comment "{why} ({hashlib.sha256(rule.encode()).hexdigest()[:8]})"\n'


def signature(text: str) -> list[str]:
    """What tells two tables apart, in our file as in nft's listing, which writes the same rules differently.

    A rule of ours is known by its comment; one without is somebody else's.
    """
    lines = [line.strip() for line in text.splitlines()]
    inside = [line for line in lines if line and line[0] not in "#}" and not line.startswith(_FRAME)]
    return [_signed(line) for line in inside]


_FRAME = ("table ", "delete table ", "type filter hook input ", "chain input ")


def _signed(line: str) -> str:
    said = re.search(r'\b(accept|drop) comment "([^"]*)"$', line)
    return f"{said[1]}: {said[2]}" if said else line


def replacing(listing: str) -> str:
    """A file that brings back the table of `listing`, whatever is in its place."""
    return f"table {TABLE}\ndelete table {TABLE}\n{listing}"


def shut(listeners: Iterable[tuple[str, str, int]], wish: Wish) -> list[tuple[str, str, int]]:
    """Of listeners (program, address, port) on a node without a rank, those that would be cut off."""
    first, last = wish.random_ports
    return [
        one
        for one in listeners
        if (first <= one[2] <= last or one[2] in wish.closed_ports)
        and one[2] not in wish.open_ports
        and not one[1].startswith("127.")
        and one[1] != "::1"
        # What Docker publishes comes to the container by forwarding, where these rules are not.
        and one[0] != "docker-proxy"
    ]
