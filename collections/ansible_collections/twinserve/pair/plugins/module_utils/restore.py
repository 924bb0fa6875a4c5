"""The commands that put ports back into a state that was read before: for absent, and for the way back.

Each runs for itself: a step that finds its work done, or a service gone, must not keep the next one from
running. Whoever runs them compares the outcome.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import netplan_file, nm_profiles
from .port_state import sysctl

Command = list[str]


def commands(
    state: Mapping[str, Any], present: Mapping[str, Any], saved: str, thorough: bool = False
) -> list[Command]:
    """From anything that our change may have left to `state`.

    `present` is what is there now or will be: its profiles and file tell what there is to undo. `saved` is
    where the content of the state's netplan file is kept. `thorough` is the way back of a change: it has all
    of netplan applied, which may make the management address blink and is right where that is lost anyway,
    and it deletes the profiles that the change made.
    """
    found = _file(state, saved)
    if state["netplan"] != present["netplan"]:
        found += (
            [["netplan", "apply"]] if thorough else [netplan_file.generate_argv(), ["networkctl", "reload"]]
        )
    for netdev, port in state["ports"].items():
        profiles = state["profiles"].get(netdev), present["profiles"].get(netdev)
        found += _profile(netdev, port, *profiles, delete=thorough)
        found += _links(netdev, port)
    return found


def _file(state: Mapping[str, Any], saved: str) -> list[Command]:
    path = str(netplan_file.FILE)
    if state["netplan"] is None:
        return [["rm", "-f", path]]
    staged = str(netplan_file.FILE.with_suffix(".new"))
    return [["cp", "-p", saved, staged], ["mv", "-f", staged, path]]


def _profile(
    netdev: str,
    port: Mapping[str, Any],
    was: Mapping[str, str] | None,
    is_now: Mapping[str, str] | None,
    delete: bool,
) -> list[Command]:
    """Back to the profile that the port was on; without one the port only leaves ours."""
    ours = nm_profiles.name_of(netdev)
    if was is None and is_now is None and not port["uuid"]:
        return []
    found: list[Command] = []
    if was is not None:
        found.append(nm_profiles.write_argv(netdev, was, new=False))
    elif is_now is not None and not delete:
        # It stays until somebody confirms that he still reaches the node; nothing shall bring it up.
        found.append(["nmcli", "con", "modify", "id", ours, "connection.autoconnect", "no"])
    if port["uuid"]:
        wait = 10 if port["active"] else 0
        found.append(nm_profiles.up_argv(port["uuid"], netdev, wait, "uuid"))
    elif is_now is not None:
        found.append(["nmcli", "--wait", "5", "con", "down", "id", ours])
    if was is None and is_now is not None and delete:
        found.append(["nmcli", "con", "delete", "id", ours])
    return found


def _links(netdev: str, port: Mapping[str, Any]) -> list[Command]:
    """MTU, addresses and flags. What a service gives the port comes from it; the rest was set by hand."""
    found: list[Command] = [["ip", "link", "set", netdev, "mtu", str(port["mtu"])]]
    by_hand = port["owner"] is None
    if by_hand:
        # While it is taken away from NetworkManager, nothing there reacts to what follows.
        found += [["nmcli", "dev", "set", netdev, "managed", "no"]] if port["managed"] else []
        found += [["ip", "-4", "addr", "flush", "dev", netdev]]
        found += [["ip", "-6", "addr", "flush", "dev", netdev, "scope", "global"]]
        found += [
            ["sh", "-c", f"echo {value} > {sysctl(name, netdev)}"]
            for name, value in port["sysctls"].items()
            if value is not None
        ]
    if master := port.get("master"):
        # A bond takes only a port that is down.
        found += [["ip", "link", "set", netdev, *words] for words in (["down"], ["master", master])]
    found += [["ip", "link", "set", netdev, "up" if port["up"] else "down"]]
    # A link-local address that a service chose is chosen anew by it.
    fixed = [one for one in port["addresses"] if by_hand or not one["address"].startswith("169.254.")]
    if fixed and port["uuid"] and not port["active"]:
        # NetworkManager clears the port when it begins with a profile, and was told not to be waited for.
        found += [["sleep", "1"]]
    found += [["ip", "addr", "add", *one["set"], "dev", netdev] for one in fixed]
    found += [["ip", "route", "add", *words] for words in port["routes"]]
    if by_hand and port["managed"]:
        found += [["nmcli", "dev", "set", netdev, "managed", "yes"]]
    return found


def reachable(others: Sequence[Mapping[str, Any]], routes: Sequence[Sequence[str]]) -> list[Command]:
    """Addresses and routes by which the node was reached, should their own service not bring them back."""
    found = [["sleep", "2"]] if others else []
    found += [["ip", "addr", "add", *one["set"], "dev", one["netdev"]] for one in others]
    found += [["ip", "route", "add", *words] for words in routes]
    return found


def same(wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What of `wanted` is not there now, as sentences. What a service gives a port is its own affair."""
    lacks = []
    if wanted["netplan"] != now["netplan"]:
        lacks.append(f"{netplan_file.FILE} is not as it was")
    for netdev, port in wanted["ports"].items():
        is_now = now["ports"].get(netdev)
        if is_now is None:
            continue
        if port["mtu"] != is_now["mtu"]:
            lacks.append(f"{netdev} has MTU {is_now['mtu']} instead of {port['mtu']}")
        if port["owner"] is None and port["up"] != is_now["up"]:
            lacks.append(f"{netdev} is {'up' if is_now['up'] else 'down'}")
        if port.get("master") not in (None, is_now["master"]):
            lacks.append(f"{netdev} is not in {port['master']}")
        had, has = ([one["address"] for one in side["addresses"]] for side in (port, is_now))
        if port["owner"] is None and sorted(had) != sorted(has):
            shown = (", ".join(side) or "no address" for side in (has, had))
            lacks.append(f"{netdev} has {' instead of '.join(shown)}")
    return lacks
