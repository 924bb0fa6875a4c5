"""All that is known of a pair, as one document: the screen is made of it, and programs read it as JSON.

Only what is on the nodes is needed: a typing error in the settings, a node that is off or a pair that is down
must not keep anybody from seeing the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .acceptance.client import netloc
from .gateway import ending
from .pair_health import judge
from .services import GATEWAY, node_runs
from .snapshots import models

SCHEMA = 1


def report(pair: str, hosts: Sequence[str], nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The document of one pair; `nodes` are probes by host name, absent where unreachable.

    Of a supervisor that does not run nothing is told: its last words are of another life.
    """
    health = judge(hosts, nodes)
    head = nodes.get(hosts[0]) or {}
    config = head.get("pair_config") or {}
    state = (head.get("state") or {}) if node_runs(head, "twinserve.service") else {}
    effective, api = state.get("effective") or {}, config.get("api") or {}
    return {
        "schema": SCHEMA,
        "pair": pair,
        "health": health.word,
        "serves": health.serves,
        "problems": list(health.problems),
        "state": state.get("state", "stopped") if config else None,
        "detail": state.get("detail"),
        "since": state.get("since"),
        "api": f"http://{netloc(api['bind'], api['port'])}/v1" if api else None,
        "gateway": _gateway(head) if api.get("gateway") else None,
        "served_name": config.get("served_name"),
        "release": config.get("release"),
        "streams": (config.get("promise") or {}).get("parallel"),
        "window": effective.get("window"),
        "pool_tokens": effective.get("pool_tokens"),
        "pool_free_tokens": effective.get("pool_free_tokens"),
        "ranks": [_rank(rank, name, state, nodes.get(name)) for rank, name in enumerate(hosts)],
        "rails": state.get("rails") or [],
        "canary": state.get("last_canary"),
        "restarts": state.get("restarts") or [],
        "last_error": state.get("last_error"),
        "drift": bool(state.get("digest")) and state["digest"] != config.get("digest"),
        "warnings": [*(state.get("warnings") or []), *_soon(hosts[0], head, api)],
    }


def _gateway(head: Mapping[str, Any]) -> dict[str, Any]:
    shown = (head.get("gateway") or {}).get("shown_certificate")
    ends = ending.date(shown) if shown else None
    return {"running": node_runs(head, GATEWAY), "certificate_ends": ends}


def _soon(name: str, head: Mapping[str, Any], api: Mapping[str, Any]) -> list[str]:
    """What of the gateway will go wrong with time."""
    text = ending.ends_soon(head, name) if api.get("gateway") else ""
    return [text] if text else []


def _rank(rank: int, name: str, state: Mapping[str, Any], node: Mapping[str, Any] | None) -> dict[str, Any]:
    ranks: list[dict[str, Any]] = state.get("ranks") or []
    known = next((one for one in ranks if one["rank"] == rank), {})
    seen = node or {}
    return {
        "rank": rank,
        "name": name,
        "reachable": node is not None,
        "running": node_runs(seen, "twinserve-rank.service") if node is not None else None,
        "gpu_gib": known.get("gpu_gib"),
        "memory_available_gib": (seen.get("memory") or {}).get("available_gib"),
        "image": (seen.get("image") or {}).get("content"),
        "models": models(seen.get("rank_plan") or {}),
        "runtime": seen.get("runtime"),
    }
