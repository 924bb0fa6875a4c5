"""Network ports of a node: state from sysfs, IPv4 addresses from `ip -j addr`."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .kernel_files import link_name, names, read_attr, read_int


@dataclass(frozen=True)
class Netdev:
    """A network port. `mtu` in bytes, `speed` in Mbit/s; None where the kernel has no value (a down port)."""

    name: str
    operstate: str
    carrier: bool | None
    mtu: int
    speed: int | None
    pci: str | None


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
    )


def netdev_names(root: Path = Path("/")) -> list[str]:
    """Return the names of all ports, sorted."""
    return names(root / "sys/class/net")


def parse_addresses(text: str) -> dict[str, list[str]]:
    """Parse `ip -j addr` into port name -> IPv4 addresses with prefix length, in the kernel's order.

    Raises ValueError when the text is not what `ip` prints.
    """
    found: dict[str, list[str]] = {}
    # `ip` prints `{}` for links that its filters leave out.
    for entry in json.loads(text or "[]"):
        if entry.get("ifname"):
            found[entry["ifname"]] = [
                f"{info['local']}/{info['prefixlen']}"
                for info in entry.get("addr_info", [])
                if info.get("family") == "inet" and not info.get("tentative")
            ]
    return found


def read_addresses() -> dict[str, list[str]]:
    """Ask `ip` for this node's IPv4 addresses.

    Raises OSError, subprocess.SubprocessError or ValueError when it cannot say.
    """
    done = subprocess.run(["ip", "-j", "addr"], capture_output=True, text=True, check=True, timeout=20)
    return parse_addresses(done.stdout)
