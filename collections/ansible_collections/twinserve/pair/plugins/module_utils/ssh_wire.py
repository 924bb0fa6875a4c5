"""The only wire between the nodes: ssh from the head to each worker, with one key to control and one to copy.

Pure: from the probes of all nodes, what each file of the wire must hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .managed_files import differing

KNOWN_HOSTS = "/etc/twinserve/known_hosts"
CONTROL_COMMAND = "/usr/local/sbin/twinserve-control"


def plan(
    nodes: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    addresses: Sequence[str],
    plans: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """One entry a node, by rank: on the head `keys` to make and the known hosts, on workers their lines.

    `addresses` are the management addresses, `plans` the fabric plans. No lines until the head has keys.
    `lacks` says whether anything is to be made there at all.
    """
    head = nodes[0]
    keys = head["public_keys"]
    missing = [name for name in ("control", "copy") if not keys[name]]
    rails = [[port["address"].split("/")[0] for port in plan["ports"]] for plan in plans]
    known = _known_hosts(nodes, names, addresses, rails)
    strange = bool(differing([{"path": KNOWN_HOSTS, "content": known, "mode": "0644"}], head["files"] or {}))
    entries: list[dict[str, Any]] = [{"keys": missing, "known_hosts": known, "known_hosts_differ": strange}]
    entries += [_worker(node, keys) for node in nodes[1:]]
    for entry, node in zip(entries, nodes, strict=True):
        entry["lacks"] = _lacks(entry) or not node["tools"]["twinserve_user"]
    return entries


def _lacks(entry: Mapping[str, Any]) -> bool:
    """Whether anything of the wire has to be made on this node."""
    lines = [entry[name]["missing"] or entry[name]["stale"] for name in ("control", "copy") if name in entry]
    return bool(entry["keys"]) or bool(entry.get("known_hosts_differ")) or any(lines)


def _known_hosts(
    nodes: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    addresses: Sequence[str],
    rails: Sequence[Sequence[str]],
) -> str:
    lines = []
    for rank, node in enumerate(nodes[1:], start=1):
        known = dict.fromkeys([names[rank], addresses[rank], *rails[rank]])
        lines.append(f"{','.join(known)} {node['host_key']}\n")
    return "".join(lines)


def _worker(node: Mapping[str, Any], keys: Mapping[str, str | None]) -> dict[str, Any]:
    """Each key may do one thing: `restrict` takes terminals, forwarding and everything else away."""
    home = (node.get("hf") or {}).get("home", "")
    commands = {"control": CONTROL_COMMAND, "copy": f"rrsync -wo {home}"}
    lines: dict[str, Any] = {"keys": []}
    for name, command in commands.items():
        key, options = keys[name], f'restrict,command="{command}"'
        text = f"{key} twinserve-{name}"
        present = f"{options} {text}" in node["authorized"][name]
        lines[name] = {
            "key": text,
            "options": options,
            "missing": bool(key) and not present,
            "stale": _stale(node["authorized"][name], key) if key else [],
        }
    return lines


def _stale(lines: Sequence[str], key: str) -> list[str]:
    """Keys of an earlier head: who has one may still write to the cache."""
    keys = (" ".join(line.split()[-3:]) for line in lines)
    return [one for one in keys if not one.startswith(f"{key} ")]
