"""Addresses of a node and who owns each port: NetworkManager, or systemd-networkd, or nobody."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from .netdevs import read_links
from .shell import run

# Each is there while its service runs.
NM, NETWORKD = Path("/run/NetworkManager"), Path("/run/systemd/netif")
NETPLAN = Path("/etc/netplan")


def parse_nmcli(text: str) -> set[str]:
    """Ports NetworkManager manages, by `nmcli -t -f DEVICE,STATE device` (colons in names are escaped)."""
    managed = set()
    for line in text.splitlines():
        device, _, state = line.rpartition(":")
        if state and state not in ("unmanaged", "unavailable", "connected (externally)"):
            managed.add(device.replace("\\:", ":"))
    return managed


def read_network() -> dict[str, Any]:
    """`links` and `owners` by port, and the `netplan` files."""
    links = read_links()
    managed: set[str] = set()
    if shutil.which("nmcli") and NM.is_dir():
        managed = parse_nmcli(run(["nmcli", "-t", "-f", "DEVICE,STATE", "device"]))
    networkd = NETWORKD.is_dir()
    owners = {name: _owner(name, managed, networkd) for name in links}
    return {"links": links, "owners": owners, "netplan": _netplan_files()}


def _owner(name: str, managed: set[str], networkd: bool) -> str | None:
    if name in managed:
        return "NetworkManager"
    return "networkd" if networkd else None


def _netplan_files() -> dict[str, str]:
    """Our own file's content, and the names of the others: their content may hold Wi-Fi passwords."""
    return {
        str(path): path.read_text() if path.name == "60-twinserve-fabric.yaml" else ""
        for path in sorted(NETPLAN.glob("*.yaml"))
    }
