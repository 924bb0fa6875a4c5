"""One screen about a pair: pure, from what its nodes said. Made for the moment when something is wrong.

Only what is on the nodes is needed: a typing error in the settings, a node that is off or a pair that is down
must not keep anybody from seeing the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .services import node_runs


def screen(head: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> str:
    """The screen of the pair that `head` leads; `nodes` are probes by host name, absent where unreachable."""
    config = head.get("pair_config")
    if not config:
        return "nothing is deployed on this head yet: run site.yml"
    return "\n".join(_lines(head, config, nodes))


def _lines(
    head: Mapping[str, Any], config: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    state = (head.get("state") or {}) if node_runs(head, "twinserve.service") else {}
    effective = state.get("effective") or {}
    word = state.get("state", "stopped")
    detail = f", {state['detail']}" if state.get("detail") else ""
    yield f"{config['pair']}: {word}{detail.removeprefix(f', {word}')}"
    api = config["api"]
    yield f"  api      http://{api['bind']}:{api['port']}/v1 ({config['served_name']})"
    window, pool, free = (effective.get(key) for key in ("window", "pool_tokens", "pool_free_tokens"))
    yield f"  window   {_number(window)} tokens, pool {_number(pool)}, free {_number(free)}"
    for member in config["ranks"]:
        yield f"  rank {member['rank']}   {_rank(member, state, nodes)}"
    yield from _rails(state)
    yield f"  release  {config['release']}"
    yield from _history(state, config)


def _rank(member: Mapping[str, Any], state: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> str:
    node = nodes.get(member["name"])
    if not node:
        return f"{member['name']}: unreachable from here"
    running = "running" if node_runs(node, "twinserve-rank.service") else "not running"
    ranks: list[dict[str, Any]] = state.get("ranks") or []
    known = next((one for one in ranks if one["rank"] == member["rank"]), {})
    gpu = f", {known['gpu_gib']:.1f} GiB on the GPU" if known.get("gpu_gib") is not None else ""
    image = f"image {node['image']['content'][7:19]}" if node.get("image") else "image missing"
    memory = node.get("memory") or {}
    free = f", {memory['available_gib']:.0f} GiB memory free" if memory else ""
    return f"{member['name']}: {running}{gpu}, {image}{free}"


def _rails(state: Mapping[str, Any]) -> Iterator[str]:
    for number, rail in enumerate(state.get("rails") or []):
        ends = " <-> ".join(_end(rail[side]) for side in ("head", "worker"))
        yield f"  rail {number}   {ends}{'' if rail.get('used', True) else ', not used'}"


def _end(end: Mapping[str, Any]) -> str:
    return f"{end['hca']} {end['address']} (GID {end['gid_index']})"


def _history(state: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    canary = state.get("last_canary")
    if canary:
        word = "answered" if canary["ok"] else "no answer"
        yield f"  canary   {word} in {canary['seconds']} s at {canary['at']}"
    error = state.get("last_error")
    last = f", last error: {error}" if error and error not in state.get("detail", "") else ""
    yield f"  restarts {len(state.get('restarts') or [])}{last}"
    if state.get("digest") and state["digest"] != config["digest"]:
        yield "  drift    running with other settings than written: run serve.yml -e restart=true"
    for warning in state.get("warnings") or []:
        yield f"  warning  {warning}"


def _number(value: Any) -> str:
    return "-" if value is None else str(value)
