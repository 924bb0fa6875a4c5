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
    """One entry a node, by rank: `keys` to be made and the file of known hosts on the head, lines on the workers.

    `addresses` are the management addresses, `plans` the fabric plans. The lines are empty until the head has keys.
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
    nodes: Sequence[Mapping[str, Any]], names: Sequence[str], addresses: Sequence[str], rails: Sequence[Sequence[str]]
) -> str:
    lines = []
    for rank, node in enumerate(nodes[1:], start=1):
        known = dict.fromkeys([names[rank], addresses[rank], *rails[rank]])
        lines.append(f"{','.join(known)} {node['host_key']}\n")
    return "".join(lines)


def _worker(node: Mapping[str, Any], keys: Mapping[str, str | None]) -> dict[str, Any]:
    """Each key may do one thing: `restrict` takes terminals, forwarding and everything else away."""
    control, copy = keys["control"], keys["copy"]
    home = (node.get("hf") or {}).get("home", "")
    control_line = f'restrict,command="{CONTROL_COMMAND}" {control} twinserve-control\n' if control else ""
    copy_line = f'restrict,command="rrsync -wo {home}" {copy} twinserve-copy' if copy else ""
    return {
        "keys": [],
        "control": control_line,
        "control_missing": bool(control_line) and node["authorized"]["control"] != control_line,
        "copy": copy_line,
        "copy_missing": bool(copy_line) and node["authorized"]["copy"] != [copy_line],
    }
