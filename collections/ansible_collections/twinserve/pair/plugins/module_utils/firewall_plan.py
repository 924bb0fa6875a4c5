"""What each node's firewall must hold, from probes, settings and the link of all nodes of the pair: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import other_firewalls
from .firewall_rules import FILE, UNIT, Wish, render, shut, signature
from .managed_files import differing
from .node_faults import rank_runs
from .rails import rank_name
from .render import listening_ports

Links = Sequence[Sequence[Mapping[str, Any]]]


def plan(
    nodes: Sequence[Mapping[str, Any]],
    settings: Sequence[Mapping[str, Any]],
    links: Links,
    ssh_ports: Sequence[int],
    unit: str,
) -> list[dict[str, Any]]:
    """One plan a node, by rank; `links` are its ends of the rails ({netdev, address}).

    `rules` is the file, empty when there shall be none. `add` and `drop` are for the firewalls of others.
    `differs`: there is something to do. `waits`: for the pair to be stopped. `notes` are worth telling then.
    """
    return [
        _plan(rank, node, own, links, ssh, unit)
        for rank, (node, own, ssh) in enumerate(zip(nodes, settings, ssh_ports, strict=True))
    ]


def _plan(
    rank: int, node: Mapping[str, Any], settings: Mapping[str, Any], links: Links, ssh: int, unit: str
) -> dict[str, Any]:
    seen = node.get("firewall") or {}
    wish = _wish(rank, node, settings, links, ssh) if settings["firewall"] else None
    if wish and not (wish.rails and wish.peers):
        # Without a link there is nobody to let in, and so no pair yet.
        return {
            "rules": "",
            "add": [],
            "drop": [],
            "differs": False,
            "package": False,
            "waits": "",
            "notes": [],
        }
    rules = render(wish) if wish else ""
    others = other_firewalls.steps(seen, wish.rails if wish else [], wish.peers if wish else [])
    package = bool(rules) and not seen.get("nft")
    waits = f"warn {rank_name(rank)}: {_WAITS}" if package and rank_runs(node) else ""
    differs = any(others.values()) or _table_differs(node, rules, unit)
    return {
        "rules": rules,
        **others,
        "package": package and not waits,
        "differs": differs and not waits,
        "waits": waits,
        "notes": [*_cut_off(rank, node, wish)] if wish and differs and not rank_runs(node) else [],
    }


_WAITS = (
    "the firewall needs the package nftables, which is not installed under a running rank: run "
    "playbooks/stop.yml, then site.yml"
)


def _wish(rank: int, node: Mapping[str, Any], settings: Mapping[str, Any], links: Links, ssh: int) -> Wish:
    own_ports = {one["setting"]: int(one["port"]) for one in listening_ports(rank, settings)}
    open_ports = [ssh, *_ssh_ports(node), *(settings["firewall_allow_ports"] or [])]
    if settings["expose"] != "loopback" and rank == 0:
        open_ports.append(int({**settings, **settings["effective"]}["api_port"]))
    first, last = (node.get("firewall") or {}).get("range") or (32768, 60999)
    return Wish(
        rails=[end["netdev"] for end in links[rank]],
        peers=[end["address"] for other, link in enumerate(links) if other != rank for end in link],
        open_ports=open_ports,
        closed_ports=[port for port in own_ports.values() if port not in open_ports],
        random_ports=(int(first), int(last)),
    )


def _ssh_ports(node: Mapping[str, Any]) -> list[int]:
    """Where sshd listens, also for others than us."""
    return [
        one["port"]
        for one in node.get("listeners") or []
        if one["process"] == "sshd" and not _is_loopback(one)
    ]


def _is_loopback(listener: Mapping[str, Any]) -> bool:
    return str(listener["address"]).startswith("127.") or listener["address"] == "::1"


def _table_differs(node: Mapping[str, Any], rules: str, unit: str) -> bool:
    """Whether the table that is loaded, or what loads it at the next boot, is another one."""
    seen, files = node.get("firewall") or {}, node.get("files") or {}
    if not rules:
        return bool(seen.get("table")) or FILE in files or UNIT in files
    wanted = [
        {"path": FILE, "content": rules, "mode": "0644"},
        {"path": UNIT, "content": unit, "mode": "0644"},
    ]
    return (
        signature(seen.get("table") or "") != signature(rules)
        or bool(differing(wanted, files))
        or not seen.get("enabled")
    )


def _cut_off(rank: int, node: Mapping[str, Any], wish: Wish) -> Iterator[str]:
    """Services of others. Told before: with a rank that runs nobody could tell them from the engine's own."""
    listeners = [(one["process"], one["address"], one["port"]) for one in node.get("listeners") or []]
    for process, address, port in dict.fromkeys(shut(listeners, wish)):
        yield (
            f"warn {rank_name(rank)}: {process or 'a program'} listens on {address or '*'}:{port}, which the "
            f"firewall closes to all but the pair: firewall_allow_ports: [{port}] keeps it open"
        )


def problem(node: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """For the doctor: why the engine's ports are open although they should not be; empty when all is well."""
    files = node.get("files") or {}
    if (
        not settings.get("firewall")
        or not node.get("rank_plan")
        or not (node.get("firewall") or {}).get("range")
    ):
        return ""
    if FILE not in files:
        return "the firewall is not set up: the engine's ports are open to every network; run site.yml"
    table = node["firewall"]["table"]
    if not table:
        return (
            "the firewall is not loaded: the engine's ports are open to every network; "
            "systemctl restart twinserve-firewall"
        )
    if signature(table) != node["firewall"]["written"]:
        return (
            "the firewall's rules were changed by hand: systemctl restart twinserve-firewall puts them back"
        )
    return ""
