"""How ports stand: what is needed to put each back exactly so, whoever set it up.

A state is plain data: it is kept on the node as JSON, and compared with what is there later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import netplan_file, nm_profiles
from .kernel_files import read_attr
from .shell import CommandError, run

# What networkd and NetworkManager set on a port they take, and leave behind when they let it go.
SYSCTLS = ("ipv6.disable_ipv6", "ipv6.accept_ra", "ipv6.addr_gen_mode")
SYSCTL_ROOT = Path("/proc/sys/net")

# Bridges that Docker makes and takes away with its networks, at any moment; nobody reaches a node by one.
_DOCKERS = re.compile(r"docker0|br-[0-9a-f]{12}")

State = dict[str, Any]


def read(netdevs: Collection[str]) -> State:
    """`netplan` (our file), and for each port that is there `ports` and `profiles` (ours)."""
    devices, links = nm_profiles.devices(), _links()
    here = [netdev for netdev in sorted(netdevs) if netdev in links]
    return {
        "netplan": netplan_file.read(),
        "ports": {netdev: _port(links[netdev], devices.get(netdev)) for netdev in here},
        "profiles": {netdev: nm_profiles.read(netdev) if devices else None for netdev in here},
    }


def is_bare(port: Mapping[str, Any]) -> bool:
    """Whether nobody gave the port anything; link-local addresses appear by themselves."""
    given = [one for one in port["addresses"] if not one["address"].startswith("169.254.")]
    return not (given or port["routes"] or port.get("leased") or port.get("master"))


def others(netdevs: Collection[str]) -> list[dict[str, Any]]:
    """IPv4 addresses of other ports, without Docker's: `netdev`, `address` with length, words to `set` it."""
    return [
        {"netdev": name, "address": f"{info['local']}/{info['prefixlen']}", "set": address_words(info)}
        for name, link in _links().items()
        if name not in netdevs and "LOOPBACK" not in link.get("flags", []) and not _DOCKERS.fullmatch(name)
        for info in link.get("addr_info", [])
        if info.get("family") == "inet"
    ]


def routes(netdevs: Collection[str]) -> list[list[str]]:
    """IPv4 routes through other ports than these that somebody set, as words for `ip route add`."""
    lines = [line.split() for line in run(["ip", "-4", "route", "show"]).splitlines()]
    return [_route(words) for words in lines if _is_set(words) and _dev(words) not in netdevs]


def text(state: Mapping[str, Any]) -> str:
    """A state for people to read."""
    lines = []
    if state["netplan"] is not None:
        lines += [str(netplan_file.FILE), *(f"  {line}" for line in state["netplan"].splitlines())]
    for netdev, port in sorted(state["ports"].items()):
        addresses = ", ".join(one["address"] for one in port["addresses"]) or "no address"
        by = f" (profile {port['profile']})" if port["profile"] else ""
        by = f", in {port['master']}{by}" if port.get("master") else by
        lines.append(f"{netdev}: {'up' if port['up'] else 'down'}, MTU {port['mtu']}, {addresses}{by}")
    profiles = "".join(
        nm_profiles.text(netdev, fields) for netdev, fields in sorted(state["profiles"].items())
    )
    return "".join(f"{line}\n" for line in lines) + profiles


def address_words(info: Mapping[str, Any]) -> list[str]:
    """One entry of `addr_info` as words for `ip addr add`."""
    words = [str(info["local"])]
    if peer := info.get("address"):
        words += ["peer", str(peer)]
    words[-1] += f"/{info['prefixlen']}"
    for key in ("broadcast", "scope", "label"):
        if info.get(key) and not (key == "scope" and info[key] == "global"):
            words += [key, str(info[key])]
    return [*words, "noprefixroute"] if info.get("noprefixroute") else words


def _links() -> dict[str, dict[str, Any]]:
    links = json.loads(run(["ip", "-j", "addr"], timeout=20) or "[]")
    return {link["ifname"]: link for link in links if link.get("ifname")}


def _port(link: Mapping[str, Any], device: Mapping[str, str] | None) -> dict[str, Any]:
    """One port. `owner` is None while nobody but a person's own commands sets it up."""
    netdev = link["ifname"]
    owner = _owner(netdev, device)
    on_profile = owner == "NetworkManager" and device is not None
    return {
        "up": "UP" in link.get("flags", []),
        "mtu": link["mtu"],
        # The bridge, bond or VRF that it is a member of.
        "master": link.get("master"),
        "leased": any(
            info.get("dynamic") for info in link.get("addr_info", []) if info.get("family") == "inet"
        ),
        "addresses": [
            {"address": f"{info['local']}/{info['prefixlen']}", "set": address_words(info)}
            for info in link.get("addr_info", [])
            if _is_fixed(info)
        ],
        "routes": _port_routes(netdev),
        "sysctls": {name: read_attr(sysctl(name, netdev)) for name in SYSCTLS},
        "owner": owner,
        "managed": device is not None and device["state"] != "unmanaged",
        "profile": device["profile"] if on_profile and device else "",
        "uuid": device["uuid"] if on_profile and device else "",
        "active": on_profile and device is not None and device["state"] == "connected",
    }


def sysctl(name: str, netdev: str) -> Path:
    """The file of one of SYSCTLS; a port's name may have dots."""
    family, _, key = name.partition(".")
    return SYSCTL_ROOT / family / "conf" / netdev / key


def _owner(netdev: str, device: Mapping[str, str] | None) -> str | None:
    if device and device["state"] not in ("unmanaged", "unavailable", "connected (externally)"):
        return "NetworkManager"
    try:
        said = run(["networkctl", "status", netdev, "--json=short"])
    except CommandError:
        # It is not there, or does not run: then it has no port.
        return None
    managed = json.loads(said or "{}").get("AdministrativeState", "unmanaged") != "unmanaged"
    return "networkd" if managed else None


def _is_fixed(info: Mapping[str, Any]) -> bool:
    """Whether an address was given: not leased, and not made by the kernel out of the port's own MAC."""
    return not info.get("dynamic") and (info.get("family") == "inet" or info.get("scope") == "global")


def _port_routes(netdev: str) -> list[list[str]]:
    lines = [line.split() for line in run(["ip", "-4", "route", "show", "dev", netdev]).splitlines()]
    return [[*_route(words), "dev", netdev] for words in lines if _is_set(words)]


def _is_set(words: Sequence[str]) -> bool:
    """Whether a person or a service set the route: the kernel makes its own with each address."""
    return bool(words) and "kernel" not in words


def _route(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in ("linkdown", "dead", "onlink-dead")]


def _dev(words: Sequence[str]) -> str:
    return words[words.index("dev") + 1] if "dev" in words else ""
