"""What there is to do about a planned link: pure, from probes, plans, and the ssh between the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .node_faults import rank_runs

Node = Mapping[str, Any]


def due(
    nodes: Sequence[Node],
    plans: Sequence[Mapping[str, Any]],
    wires: Sequence[Mapping[str, Any]],
    rank: int,
    dry: bool,
    measure: bool,
) -> dict[str, bool]:
    """What the node of `rank` takes part in; `any` whether there is anything.

    Asked for all nodes at once: the steps of one depend on the others. `dry` is check mode, in which
    addresses that are only planned are not there to be proved; `measure` asks for the rails' bandwidth.
    """
    plan, tools = plans[rank], nodes[rank]["tools"]
    serves = all(rank_runs(node) for node in nodes)
    addresses = any(isinstance(one["netplan"], str) or one["profiles"] for one in plans)
    wire = any(one["lacks"] for one in wires)
    # A pair that serves proves its rails with every token; the supervisor proves them again at each start.
    moved = addresses or not serves
    prove = bool(plan["ports"]) and moved and not (dry and (addresses or not tools["ping"]))
    # A pair that serves on a link that is as planned hears nothing of it.
    tell = prove or addresses or bool(plan["warnings"])
    equipped = all(node["tools"]["ping"] and node["tools"]["sudo"] for node in nodes)
    ports = any(one["bring_up"] for one in plans)
    change = ports or addresses or wire or measure or not (equipped or serves)
    return {
        "serves": serves,
        "addresses": addresses,
        "wire": wire,
        "prove": prove,
        "tell": tell,
        "change": change,
        "any": change or tell or not serves or plan["error"] != "",
    }
