"""Addresses of a node, and who configured each port: NetworkManager, systemd-networkd, or nobody."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import netplan_file, nm_profiles
from .netdevs import read_links
from .networkd_match import sections
from .services import is_active, parse_show
from .shell import run

_UNITS = {"NetworkManager.service": "NetworkManager", "systemd-networkd.service": "networkd"}
IFUPDOWN = Path("/etc/network")


@dataclass(frozen=True)
class Maker:
    """Who has a port, and what gave it its addresses.

    `service` is `NetworkManager`, `networkd` or None; `profile` the name of NetworkManager's profile or of
    networkd's file; `files` where that is written; `lasting` whether it is still there after a reboot.
    `by_hand` are addresses that no service knows of (`ip addr add`). `link_local` is whether the port is only
    to give itself an address.
    """

    service: str | None = None
    profile: str | None = None
    files: tuple[str, ...] = ()
    lasting: bool = False
    by_hand: tuple[str, ...] = ()
    link_local: bool = False


@dataclass(frozen=True)
class NmPort:
    """A port as NetworkManager sees it; `profile` is the active one's name, `file` its keyfile."""

    state: str
    profile: str = ""
    file: str = ""

    @property
    def configured(self) -> bool:
        """Whether NetworkManager itself set the port up; of what others set up it only takes note."""
        return self.state.startswith("connect") and "externally" not in self.state


@dataclass(frozen=True)
class NetworkdPort:
    """A port as networkd sees it: the `.network` file that applies, and addresses that are not its own."""

    file: str = ""
    foreign: tuple[str, ...] = ()


def parse_nmcli(devices: str, profiles: str) -> dict[str, NmPort]:
    """By port, from `nmcli -t -f DEVICE,STATE device` and `-f NAME,DEVICE,FILENAME con show --active`."""
    active = {row[1]: row for row in nm_profiles.rows(profiles, 3)}
    found = {}
    for device, state in nm_profiles.rows(devices, 2):
        name, _, file = active.get(device, ("", "", ""))
        found[device] = NmPort(state, name, file)
    return found


def parse_networkctl(text: str) -> dict[str, NetworkdPort]:
    """By port, from `networkctl status --all --json=short`: those that networkd configures."""
    found = {}
    for link in json.loads(text)["Interfaces"]:
        if link.get("NetworkFile") and link.get("AdministrativeState") != "unmanaged":
            foreign = [
                f"{'.'.join(str(byte) for byte in one['Address'])}/{one['PrefixLength']}"
                for one in link.get("Addresses", [])
                if one.get("Family") == 2 and one.get("ConfigSource") == "foreign"
            ]
            found[link["Name"]] = NetworkdPort(link["NetworkFile"], tuple(foreign))
    return found


def read_network() -> dict[str, Any]:
    """`links` by port, who made them (`makers`, see Maker), `routes` set by hand, and the `netplan` files."""
    links = read_links()
    running = running_services()
    nm = _ask_nm() if "NetworkManager" in running else {}
    networkd = _ask_networkd() if "networkd" in running else None
    texts = {str(path): text for path, text in netplan_file.sources().items()}
    makers = {name: asdict(maker(name, link, nm, networkd, texts)) for name, link in links.items()}
    # The others' content may hold Wi-Fi passwords.
    netplan = {path: text if path.endswith(netplan_file.FILE.name) else "" for path, text in texts.items()}
    return {"links": links, "makers": makers, "netplan": netplan, "routes": _routes_by_hand()}


def _routes_by_hand() -> dict[str, list[str]]:
    """IPv4 routes by port that no service made, in words."""
    # What `ip route add` makes counts as made while booting; services name themselves.
    found: dict[str, list[str]] = {}
    for route in json.loads(run(["ip", "-j", "-4", "route", "show", "proto", "boot"], timeout=20) or "[]"):
        if route.get("dev"):
            via = f" via {route['gateway']}" if route.get("gateway") else ""
            found.setdefault(route["dev"], []).append(f"{route['dst']}{via}")
    return found


def running_services() -> set[str]:
    """Those of `NetworkManager` and `networkd` that run; asked of one that does not, their clients fail."""
    shown = parse_show(run(["systemctl", "show", *_UNITS, "--property", "Id,ActiveState"], timeout=20))
    return {_UNITS[unit["Id"]] for unit in shown if unit.get("Id") in _UNITS and is_active(unit)}


def _ask_nm() -> dict[str, NmPort]:
    devices = run(["nmcli", "-t", "-f", "DEVICE,STATE", "device"], timeout=20)
    active = ["nmcli", "-t", "-f", "NAME,DEVICE,FILENAME", "connection", "show", "--active"]
    return parse_nmcli(devices, run(active, timeout=20))


def _ask_networkd() -> dict[str, NetworkdPort]:
    return parse_networkctl(run(["networkctl", "status", "--all", "--json=short"], timeout=20))


def maker(
    name: str,
    link: Mapping[str, Any],
    nm: Mapping[str, NmPort],
    networkd: Mapping[str, NetworkdPort] | None,
    netplan: Mapping[str, str],
) -> Maker:
    """Who has the port. Where both services run, the one that configured it; else NetworkManager."""
    own, here = nm.get(name), (networkd or {}).get(name)
    addresses = tuple(link["addresses"])
    if own and own.configured:
        # NetworkManager makes the routes of its addresses by itself, and marks each so.
        strange = tuple(one for one in addresses if one not in link["unrouted"])
        files, lasting = _written(own.file, _netplan_id(own.file, "netplan-", ".nmconnection"), netplan)
        return Maker("NetworkManager", own.profile, files, lasting, strange, _is_link_local(own.file))
    if here:
        files, lasting = _written(here.file, _netplan_id(here.file, "10-netplan-", ".network"), netplan)
        profile = Path(here.file).name
        return Maker("networkd", profile, files, lasting, here.foreign, _is_link_local(here.file))
    if own and own.state != "unmanaged":
        return Maker("NetworkManager", by_hand=addresses)
    if networkd is not None:
        return Maker("networkd", by_hand=addresses)
    files = tuple(str(path) for path in _ifupdown_files() if _names(path.read_text(), name))
    return Maker(None, None, files, bool(files), () if files else addresses)


def _is_link_local(file: str) -> bool:
    """Whether a .network file or a keyfile lets its port do no more than give itself an IPv4 address."""
    if not Path(file).is_file():
        return False
    said = sections(Path(file).read_text())
    network, ipv4 = said.get("Network", {}), said.get("ipv4", {})
    if ipv4:
        return ipv4.get("method") == ["link-local"]
    itself = network.get("LinkLocalAddressing", [])[-1:] in (["ipv4"], ["yes"])
    return itself and not network.get("Address") and network.get("DHCP", ["no"])[-1] in ("no", "ipv6")


def _netplan_id(file: str, prefix: str, suffix: str) -> str:
    """The key in netplan's files from which this file was generated; empty for one that was not."""
    base = Path(file).name
    return base[len(prefix) : -len(suffix)] if base.startswith(prefix) and base.endswith(suffix) else ""


def _written(file: str, netplan_id: str, netplan: Mapping[str, str]) -> tuple[tuple[str, ...], bool]:
    """Where a person wrote what `file` says, and whether it outlives a reboot."""
    if not netplan_id:
        return (file,), not file.startswith("/run/")
    sources = tuple(path for path, text in netplan.items() if _names(text, netplan_id))
    return sources or (file,), any(not path.startswith("/run/") for path in sources)


def _names(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w.-])", text) is not None


def _ifupdown_files() -> list[Path]:
    files = [IFUPDOWN / "interfaces", *sorted((IFUPDOWN / "interfaces.d").glob("*"))]
    return [path for path in files if path.is_file()]
