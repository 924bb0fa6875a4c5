"""The only wire between the nodes: ssh from the head to each worker, one key for each thing that it may do.

Pure: from the probes of all nodes, what each file of the wire must hold. A key is replaced in steps, each of
which leaves the head able to reach its workers: the new one is made beside the old, authorized everywhere in
addition, put in the old one's place; then the old one's lines go. What the nodes show tells where a rotation
stands, so one that was interrupted goes on with any later run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .managed_files import differing
from .ssh_client import KNOWN_HOSTS, NEXT

CONTROL_COMMAND = "/usr/local/sbin/twinserve-control"
CONTROL_USER = "twinserve"
CONTROL_HOME = "/var/lib/twinserve"
NAMES = ("control", "copy", "image")
# The third key streams an image into the worker's Docker: its user needs root for exactly that. Whoever asks
# for a command, as the proof of the keys does, is only told whether it may.
IMAGE_COMMAND = "/usr/local/sbin/twinserve-image"
IMAGE_FILES = (
    {
        "path": IMAGE_COMMAND,
        "content": "#!/usr/bin/python3 -I\n" + Path(__file__).with_name("image_feed.py").read_text(),
        "mode": "0755",
    },
    {
        "path": "/etc/sudoers.d/twinserve-image",
        "content": (
            "# Twinserve: what the head's image key may do here, and nothing else.\n"
            f"{CONTROL_USER} ALL=(root) NOPASSWD: /usr/bin/docker load\n"
        ),
        "mode": "0440",
    },
)


class NoHostKey(ValueError):
    """A worker cannot be recognised; the message says what to do there."""


def plan(
    nodes: Sequence[Mapping[str, Any]],
    aliases: Sequence[Sequence[str]],
    plans: Sequence[Mapping[str, Any]],
    rotate: bool = False,
) -> list[dict[str, Any]]:
    """One entry a node, by rank: on the head key files and known hosts, on workers the lines of ours.

    `aliases` are the names and addresses under which each node may be reached beside its rails, `plans` the
    fabric plans; `rotate` asks for new keys. No lines until the head has keys. `lacks` says whether anything
    is to be made there at all.
    """
    head, keys = nodes[0], nodes[0]["public_keys"]
    workers = [_worker(node, keys) for node in nodes[1:]]
    known = _known_hosts(nodes, aliases, plans)
    entry = {
        "make": _to_make(keys, rotate),
        "promote": _to_promote(keys, nodes[1:]),
        "drop": [name for name in NAMES if _spent(keys, name)],
        "known_hosts": known,
        "known_hosts_differ": bool(
            differing([{"path": KNOWN_HOSTS, "content": known, "mode": "0644"}], head["files"] or {})
        ),
    }
    entries: list[dict[str, Any]] = [entry, *workers]
    for one, node in zip(entries, nodes, strict=True):
        one["lines_differ"] = any(one[name]["differ"] for name in NAMES if name in one)
        one["lacks"] = _lacks(one) or not node["tools"]["twinserve_user"]
    return entries


def logins(
    nodes: Sequence[Mapping[str, Any]], addresses: Sequence[str], plans: Sequence[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """Every connection that the head needs: control at the management address, the others over each rail."""
    wanted = []
    for node, address, fabric in zip(nodes[1:], addresses[1:], plans[1:], strict=True):
        wanted.append({"key": "control", "user": CONTROL_USER, "address": address})
        rails = _rail_addresses(fabric)
        wanted += [{"key": "copy", "user": node["user"]["name"], "address": rail} for rail in rails]
        wanted += [{"key": "image", "user": CONTROL_USER, "address": rail} for rail in rails]
    return wanted


def _lacks(entry: Mapping[str, Any]) -> bool:
    """Whether anything of the wire has to be made on this node."""
    parts = ("lines_differ", "image_files", "make", "promote", "drop", "known_hosts_differ")
    return any(entry.get(one) for one in parts)


def _to_make(keys: Mapping[str, str | None], rotate: bool) -> list[str]:
    """Keys that are missing, and successors; a rotation that is under way is finished, not begun anew."""
    missing = [name for name in NAMES if not keys[name]]
    new = [f"{name}{NEXT}" for name in NAMES if rotate and keys[name] and not keys.get(f"{name}{NEXT}")]
    return missing + new


def _to_promote(keys: Mapping[str, str | None], workers: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Successors that take their place now: only those that every worker lets in already."""
    ready = {}
    for name in NAMES:
        new = keys.get(f"{name}{NEXT}")
        if new and keys[name] and new != keys[name]:
            lines = [_line(worker, name, new) in worker["authorized"][name] for worker in workers]
            if all(lines):
                ready[name] = new
    return ready


def _spent(keys: Mapping[str, str | None], name: str) -> bool:
    """Whether a successor has taken its place, or only half of its files was ever made."""
    new = keys.get(f"{name}{NEXT}")
    return new == "" or (new is not None and new == keys[name])


def _known_hosts(
    nodes: Sequence[Mapping[str, Any]],
    aliases: Sequence[Sequence[str]],
    plans: Sequence[Mapping[str, Any]],
) -> str:
    lines = []
    for node, names, fabric in zip(nodes[1:], aliases[1:], plans[1:], strict=True):
        if not node["host_key"]:
            raise NoHostKey(f"{names[0]} has no ssh host key to recognise it by: run `ssh-keygen -A` there")
        # A rail that only waits for the pair to be stopped keeps its name.
        waiting = [_plain(end) for end in fabric.get("waiting") or []]
        known = dict.fromkeys([*names, *_rail_addresses(fabric), *waiting])
        lines.append(f"{','.join(known)} {node['host_key']}\n")
    return "".join(lines)


def _rail_addresses(fabric: Mapping[str, Any]) -> list[str]:
    return [_plain(port) for port in fabric["ports"]]


def _plain(port: Mapping[str, Any]) -> str:
    return str(port["address"]).partition("/")[0]


def _worker(node: Mapping[str, Any], keys: Mapping[str, str | None]) -> dict[str, Any]:
    """The lines of each key, and whether the node's are others: those of an earlier head may still write."""
    entry: dict[str, Any] = {}
    for name in NAMES:
        current = [key for key in (keys[name], keys.get(f"{name}{NEXT}")) if key]
        lines = [_line(node, name, key) for key in dict.fromkeys(current)] if keys[name] else []
        differ = bool(lines) and sorted(lines) != sorted(node["authorized"][name])
        entry[name] = {"lines": lines, "differ": differ}
    # All lines of the user that runs none of our programs but through sudo: one file.
    ours = ("control", "image")
    entry["control_file"] = {
        "lines": [line for name in ours for line in entry[name]["lines"]],
        "differ": any(entry[name]["differ"] for name in ours),
    }
    has_key = entry["image"]["lines"]
    entry["image_files"] = differing(IMAGE_FILES, node.get("files") or {}) if has_key else []
    return entry


def _line(node: Mapping[str, Any], name: str, key: str) -> str:
    """Each key may do one thing: `restrict` takes terminals, forwarding and everything else away."""
    home = (node.get("hf") or {}).get("home", "")
    # Without its lock: a copy comes in several streams.
    copy = f"rrsync -no-lock -wo {home}"
    command = {"control": CONTROL_COMMAND, "copy": copy, "image": IMAGE_COMMAND}[name]
    return f'restrict,command="{command}" {key} twinserve-{name}'
