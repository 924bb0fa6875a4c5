"""The firewall that a node's owner has, ufw or firewalld: what the pair needs is added to it in its own way.

Only what lets the peers in on the rails, and only where it is not there already. What was added is noted, so
that just that goes again.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import atomic_file
from .shell import CommandError, run

NOTE = Path("/etc/twinserve/firewall.json")
UFW = Path("/etc/ufw")
_TUPLE = re.compile(
    r"^### tuple ### allow any any 0\.0\.0\.0/0 any (?P<peer>[\d.]+) in_(?P<netdev>\S+)", re.MULTILINE
)
_ZONE = re.compile(r"^(\S+)(?: \(.*\))?$", re.MULTILINE)
_SOURCE = re.compile(r'^\s*rule family="ipv4" source address="([\d.]+)" accept$', re.MULTILINE)

Opening = dict[str, str]


def read() -> dict[str, Any]:
    """What lets peers in now: `ufw` and `firewalld` are None where they are not active; `added` is ours."""
    added = json.loads(NOTE.read_text()) if NOTE.is_file() else []
    return {"ufw": _read_ufw(), "firewalld": _read_firewalld(), "added": added}


def _read_ufw() -> list[list[str]] | None:
    settings, rules = UFW / "ufw.conf", UFW / "user.rules"
    if not settings.is_file() or not re.search(r"^ENABLED=yes", settings.read_text(), re.MULTILINE):
        return None
    return parse_ufw(rules.read_text() if rules.is_file() else "")


def parse_ufw(rules: str) -> list[list[str]]:
    """Pairs of netdev and peer that ufw's file of rules lets in on all ports."""
    return [[one["netdev"], one["peer"]] for one in _TUPLE.finditer(rules)]


def _read_firewalld() -> dict[str, Any] | None:
    if not shutil.which("firewall-cmd"):
        return None
    try:
        run(["firewall-cmd", "--state"])
    except CommandError:
        return None  # it is installed and does not run: it blocks nothing
    default = run(["firewall-cmd", "--get-default-zone"]).strip()
    return parse_firewalld(run(["firewall-cmd", "--list-all-zones"]), default)


def parse_firewalld(text: str, default: str) -> dict[str, Any]:
    """The zone of each netdev that has one, and each zone's peers that are let in."""
    zones: dict[str, str] = {}
    peers: dict[str, list[str]] = {}
    for block in text.split("\n\n"):
        if not (name := _ZONE.search(block.strip("\n"))):
            continue
        netdevs = re.search(r"^\s+interfaces: (.*)$", block, re.MULTILINE)
        zones |= dict.fromkeys(netdevs[1].split() if netdevs else [], name[1])
        peers[name[1]] = _SOURCE.findall(block)
    return {"default": default, "zones": zones, "peers": peers}


def wanted(seen: Mapping[str, Any], rails: Iterable[str], peers: Collection[str]) -> list[Opening]:
    """What the firewalls that are active must let in."""
    found: list[Opening] = []
    for netdev in sorted(set(rails)):
        for peer in sorted(set(peers)):
            if seen.get("ufw") is not None:
                found.append({"in": "ufw", "netdev": netdev, "peer": peer})
            if other := seen.get("firewalld"):
                zone = other["zones"].get(netdev, other["default"])
                found.append({"in": "firewalld", "zone": zone, "peer": peer})
    return [one for number, one in enumerate(found) if one not in found[:number]]


def steps(seen: Mapping[str, Any], rails: Iterable[str], peers: Collection[str]) -> dict[str, list[Opening]]:
    """What to `add`, and what of ours nobody needs any more (`drop`), in the firewalls that are active."""
    needed = wanted(seen, rails, peers)
    added = [one for one in seen.get("added") or [] if seen.get(one["in"]) is not None]
    return {
        "add": [one for one in needed if not _is_there(one, seen)],
        "drop": [one for one in added if one not in needed],
    }


def _is_there(opening: Opening, seen: Mapping[str, Any]) -> bool:
    if opening["in"] == "ufw":
        return [opening["netdev"], opening["peer"]] in seen["ufw"]
    return opening["peer"] in seen["firewalld"]["peers"].get(opening["zone"], [])


def words(openings: Iterable[Opening]) -> str:
    """For the diff: one line each."""
    return "".join(f"{' '.join(_argv(one, add=True))}\n" for one in openings)


def change(add: Sequence[Opening], drop: Sequence[Opening]) -> None:
    """Add and drop, and note what is ours after each step. Raises CommandError."""
    ours: list[Opening] = json.loads(NOTE.read_text()) if NOTE.is_file() else []
    for opening, is_new in [*((one, True) for one in add), *((one, False) for one in drop)]:
        argv = _argv(opening, add=is_new)
        run(argv)
        if opening["in"] == "firewalld":
            # What lasts and what is in force are two; a reload would drop what the owner has in force alone.
            run([argv[0], "--permanent", *argv[1:]])
        ours = [one for one in ours if one != opening] + [opening] * is_new
        NOTE.parent.mkdir(mode=0o755, exist_ok=True)
        atomic_file.replace(NOTE, json.dumps(ours).encode(), 0o644)
    if not ours:
        NOTE.unlink(missing_ok=True)


def _argv(opening: Opening, add: bool) -> list[str]:
    if opening["in"] == "ufw":
        rule = ["allow", "in", "on", opening["netdev"], "from", opening["peer"]]
        return ["ufw", *rule, "comment", "twinserve"] if add else ["ufw", "delete", *rule]
    verb = "--add-rich-rule" if add else "--remove-rich-rule"
    rich = f'rule family="ipv4" source address="{opening["peer"]}" accept'
    return ["firewall-cmd", f"--zone={opening['zone']}", f"{verb}={rich}"]
