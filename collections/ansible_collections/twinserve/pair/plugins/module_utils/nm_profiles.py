"""NetworkManager's profiles of the rails: one of ours a port, and which profile a port is on."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from typing import Any

from .shell import run

# Seconds that NetworkManager is given to bring a profile up.
_UP = 10


def is_running() -> bool:
    """Whether there is a NetworkManager to ask."""
    return (
        shutil.which("nmcli") is not None
        and run(["nmcli", "-t", "-f", "RUNNING", "general"]).strip() == "running"
    )


def name_of(netdev: str) -> str:
    """The name of our profile for a port."""
    return f"twinserve-{netdev}"


def wanted(profile: Mapping[str, Any]) -> dict[str, str]:
    """What our profile holds: the addresses and nothing that could draw other traffic to the port."""
    return {
        "connection.interface-name": str(profile["netdev"]),
        "connection.autoconnect": "yes",
        # Above the profiles that NetworkManager makes by itself, which would ask for DHCP after a reboot.
        "connection.autoconnect-priority": "100",
        "ipv4.method": "manual",
        "ipv4.addresses": ", ".join([str(profile["address"]), *profile.get("more", ())]),
        "ipv4.never-default": "yes",
        "ipv6.method": "disabled",
        "802-3-ethernet.mtu": str(profile["mtu"]),
    }


_FIELDS = tuple(wanted({"netdev": "", "address": "", "mtu": ""}))


def read(netdev: str) -> dict[str, str] | None:
    """Our profile of a port as NetworkManager has it; None when there is none."""
    if name_of(netdev) not in names():
        return None
    text = run(["nmcli", "-t", "-f", ",".join(_FIELDS), "con", "show", "id", name_of(netdev)])
    pairs = (line.partition(":") for line in text.splitlines())
    return {key: _plain(value) for key, _, value in pairs if key in _FIELDS}


def names() -> list[str]:
    """The names of all profiles."""
    return [_plain(line) for line in run(["nmcli", "-t", "-f", "NAME", "con", "show"]).splitlines()]


def ours() -> list[str]:
    """The ports for which there is a profile of ours: named as ours are, and for that very port."""
    ports = (name.removeprefix("twinserve-") for name in names() if name.startswith("twinserve-"))
    return sorted(netdev for netdev in ports if _is_for(netdev))


def _is_for(netdev: str) -> bool:
    """Whether the profile of that name is for that port; `twinserve-wifi` may be somebody's own."""
    text = run(["nmcli", "-t", "-f", "connection.interface-name", "con", "show", "id", name_of(netdev)])
    return [_plain(line.partition(":")[2]) for line in text.splitlines()] == [netdev]


def write_argv(netdev: str, fields: Mapping[str, str], new: bool) -> list[str]:
    """The call that makes our profile, or gives it these fields."""
    head = ["nmcli", "con", "modify", "id", name_of(netdev)]
    if new:
        head = ["nmcli", "con", "add", "type", "ethernet", "con-name", name_of(netdev), "ifname", netdev]
    return head + [word for field in fields.items() for word in field]


def up_argv(profile: str, netdev: str, wait: int = _UP, kind: str = "id") -> list[str]:
    """The call that puts a port on a profile, given by `kind`: id (its name) or uuid."""
    return ["nmcli", "--wait", str(wait), "con", "up", kind, profile, "ifname", netdev]


def apply_argvs(profile: Mapping[str, Any], new: bool) -> list[list[str]]:
    """The calls that make our profile of a port hold what is wanted, and put the port on it."""
    netdev = str(profile["netdev"])
    return [write_argv(netdev, wanted(profile), new), up_argv(name_of(netdev), netdev)]


def delete(netdev: str) -> None:
    """Remove our profile of a port."""
    run(["nmcli", "con", "delete", "id", name_of(netdev)])


def devices() -> dict[str, dict[str, str]]:
    """`state`, `profile` and its `uuid` by port; nothing where NetworkManager does not run."""
    if not is_running():
        return {}
    text = run(["nmcli", "-t", "-f", "DEVICE,STATE,CONNECTION,CON-UUID", "device"])
    return {row[0]: {"state": row[1], "profile": row[2], "uuid": row[3]} for row in rows(text, 4)}


def rows(text: str, width: int) -> list[list[str]]:
    """The lines of `nmcli -t` that have so many fields: colons inside a field are escaped."""
    fields = [re.split(r"(?<!\\):", line) for line in text.splitlines()]
    return [[_plain(field) for field in row] for row in fields if len(row) == width]


def text(netdev: str, fields: Mapping[str, str] | None) -> str:
    """A profile for people to read; nothing for one that is not there."""
    if fields is None:
        return ""
    lines = [f"profile {name_of(netdev)}", *(f"  {key}: {value}" for key, value in sorted(fields.items()))]
    return "\n".join(lines) + "\n"


def _plain(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value)
