"""Network ports of a node: state from sysfs, IPv4 addresses from `ip -j addr`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .kernel_files import link_name, names, read_attr, read_int
from .shell import run


@dataclass(frozen=True)
class Netdev:
    """A network port. `mtu` in bytes, `speed` in Mbit/s; None where the kernel has no value (a down port)."""

    name: str
    operstate: str
    carrier: bool | None
    mtu: int
    speed: int | None
    pci: str | None
    mac: str = ""


def read_netdev(name: str, root: Path = Path("/")) -> Netdev | None:
    """Read one port below `root`; None when there is no such port."""
    base = root / "sys/class/net" / name
    operstate = read_attr(base / "operstate")
    if operstate is None:
        return None
    carrier, speed = read_int(base / "carrier"), read_int(base / "speed")
    return Netdev(
        name=name,
        operstate=operstate,
        carrier=None if carrier is None else carrier == 1,
        mtu=read_int(base / "mtu") or 0,
        # The kernel says -1 (also as an unsigned number) for an unknown speed.
        speed=speed if speed is not None and 0 < speed < 2**31 else None,
        pci=link_name(base / "device"),
        mac=read_attr(base / "address") or "",
    )


def netdev_names(root: Path = Path("/")) -> list[str]:
    """Return the names of all ports, sorted."""
    return names(root / "sys/class/net")


def parse_links(text: str) -> dict[str, dict[str, Any]]:
    """Parse `ip -j addr` by port: IPv4 addresses with length in the kernel's order, MTU, MAC, up, carrier.

    `unrouted` are the addresses for which the kernel was told to make no route (`noprefixroute`), `leased`
    those that somebody hands out, `ipv6` the global ones. `master` is the bridge, bond or VRF that the port
    is part of, `carries` are the VLANs and the like on top of it.
    Raises ValueError when the text is not what `ip` prints.
    """
    # `ip` prints `{}` for links that its filters leave out.
    links = [link for link in json.loads(text or "[]") if link.get("ifname")]
    found = {}
    for link in links:
        carries = [one["ifname"] for one in links if one.get("link") == link["ifname"]]
        found[link["ifname"]] = {**_link(link), "carries": carries}
    return found


def _link(link: Mapping[str, Any]) -> dict[str, Any]:
    """One entry of `ip -j addr`."""
    flags, infos = link.get("flags", []), link.get("addr_info", [])
    own = [
        (f"{info['local']}/{info['prefixlen']}", info)
        for info in infos
        if info.get("family") == "inet" and not info.get("tentative")
    ]
    return {
        "addresses": [address for address, _ in own],
        "unrouted": [address for address, info in own if info.get("noprefixroute")],
        "leased": [address for address, info in own if info.get("dynamic")],
        "ipv6": [
            f"{info['local']}/{info['prefixlen']}"
            for info in infos
            if info.get("family") == "inet6" and info.get("scope") == "global"
        ],
        "master": link.get("master"),
        "mtu": link.get("mtu"),
        "mac": link.get("address"),
        "up": "UP" in flags,
        "carrier": "LOWER_UP" in flags,
    }


def read_links() -> dict[str, dict[str, Any]]:
    """Ask `ip` for this node's ports. Raises CommandError or ValueError when it cannot say."""
    return parse_links(run(["ip", "-j", "addr"], timeout=20))


def read_addresses() -> dict[str, list[str]]:
    """Only the IPv4 addresses of `read_links`."""
    return {name: link["addresses"] for name, link in read_links().items()}
