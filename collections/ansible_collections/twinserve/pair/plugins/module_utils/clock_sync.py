"""Is the node's clock set by a time server? One that is off breaks TLS, tokens and logs, not the ranks."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any

from .services import parse_show
from .shell import CommandError, run

_YES = {"yes": True, "no": False}
# What systemd-timesyncd asks, and what it was told to ask.
_SERVERS = ("ServerAddress", "ServerName", "LinkNTPServers", "SystemNTPServers")
_BRIDGES = re.compile(r"docker\d+|br-[0-9a-f]{12}")


def parse(shown: str, timesync: str, chrony: str) -> dict[str, Any]:
    """What `timedatectl show` and `show-timesync` print, and `chronyc -c -n sources`.

    `synchronized` and `enabled` are None where they are not said; `servers` are addresses.
    """
    state = (parse_show(shown) or [{}])[0]
    told = (parse_show(timesync) or [{}])[0]
    rows = [line.split(",") for line in chrony.splitlines()]
    words = " ".join(told.get(name, "") for name in _SERVERS).split()
    words += [row[2] for row in rows if len(row) > 2]
    return {
        "synchronized": _YES.get(state.get("NTPSynchronized", "")),
        "enabled": _YES.get(state.get("NTP", "")),
        "servers": list(dict.fromkeys(word for word in words if _address(word))),
    }


def read() -> dict[str, Any]:
    """Ask this node (CommandError: it has no timedatectl, or systemd does not answer)."""
    shown = run(["timedatectl", "show", *_properties("NTP", "NTPSynchronized")], timeout=20)
    found = parse(shown, "", "")
    if found["synchronized"] is not False:
        return found
    # Only one of them sets the clock, if any does.
    asked = (
        ["timedatectl", "show-timesync", *_properties(*_SERVERS)],
        ["chronyc", "-c", "-n", "sources"],
    )
    return parse(shown, *(_said(argv) for argv in asked))


def problem(node: Mapping[str, Any]) -> str | None:
    """Say that the clock of the node of this probe is not set by anybody, and the cure."""
    clock = node.get("clock") or {}
    if clock.get("synchronized") is not False:
        return None
    text = "its clock is not synchronised (timedatectl): TLS, tokens and the times in logs depend on it"
    if clock["enabled"] is False:
        return f"{text}; sudo timedatectl set-ntp true"
    if hidden := _hidden(clock["servers"], (node.get("network") or {}).get("links") or {}):
        return f"{text}; {hidden}"
    servers = ", ".join(clock["servers"])
    asked = f"its time server {servers} gives no answer" if servers else "it knows no time server"
    return f"{text}; {asked}: set one that it reaches (UDP 123) in /etc/systemd/timesyncd.conf, or chrony's"


def _hidden(servers: Iterable[str], links: Mapping[str, Mapping[str, Any]]) -> str | None:
    """A server whose address lies in a network of Docker's: it is looked for among the containers."""
    for server in servers:
        for port, link in links.items():
            networks = [ipaddress.ip_interface(own).network for own in link["addresses"]]
            if _BRIDGES.fullmatch(port) and any(_address(server) in one for one in networks):
                return (
                    f"its time server {server} lies in the network of {port} ({link['addresses'][0]}), so it "
                    f"is looked for among the containers: sudo ip route add {server} via GATEWAY, or give "
                    "Docker another network (bip in /etc/docker/daemon.json)"
                )
    return None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:  # a name
        return None


def _properties(*names: str) -> list[str]:
    # timedatectl takes no list.
    return [f"--property={name}" for name in names]


def _said(argv: list[str]) -> str:
    try:
        return run(argv, timeout=20)
    except CommandError:  # the other one sets the clock here
        return ""
