"""The only wire between the nodes: ssh from the head to each worker, with one key to control and one to copy.

Pure: from the probes of all nodes, what each file of the wire must hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    """
    head = nodes[0]
    keys = head["public_keys"]
    missing = [name for name in ("control", "copy") if not keys[name]]
    rails = [[port["address"].split("/")[0] for port in plan["ports"]] for plan in plans]
    known = _known_hosts(nodes, names, addresses, rails)
    files = [{"path": KNOWN_HOSTS, "content": known, "mode": "0644"}]
    entries: list[dict[str, Any]] = [{"keys": missing, "known_hosts": known, "files": files}]
    for node in nodes[1:]:
        entries.append(_worker(node, keys))
    return entries


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
        lines[name] = {"key": text, "options": options, "missing": bool(key) and not present}
    return lines
