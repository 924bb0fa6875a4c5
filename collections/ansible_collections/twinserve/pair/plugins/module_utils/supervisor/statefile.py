"""The state file: for playbooks and people, and for a supervisor that comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..agent.plan import write_atomically
from ..link import Endpoint, Link, Rail, Unused
from .state import Phase, RankView, State
from .words import detail, shown, warnings

_SCHEMA = 1


def document(state: State, now: float) -> dict[str, Any]:
    """Return everything that is shown of the pair."""
    health = state.api.health
    return {
        "schema": _SCHEMA,
        "pair": state.config.pair,
        "state": shown(state, now),
        "since": state.since,
        "detail": detail(state, now),
        "digest": state.digest,
        "effective": {
            "window": health.get("context_length"),
            "pool_tokens": health.get("pool_tokens"),
            "pool_free_tokens": health.get("pool_free_tokens"),
            "rails": len(state.link.rails),
        },
        "ranks": [
            {
                "rank": view.rank,
                "name": view.name,
                "container": view.container,
                "launched": view.launched,
                "running": view.running,
                "gpu_gib": view.gpu_gib,
                "memory_gib": view.memory_gib,
                "estimate_gib": float(view.estimate_gib) if view.estimate_gib else None,
                "log_line": view.log_line,
            }
            for view in state.ranks
        ],
        "rails": [
            *({**_ends(rail), "used": True} for rail in state.link.rails),
            *({**_ends(one.rail), "used": False, "reason": one.reason} for one in state.link.unused),
        ],
        "restarts": [] if state.phase is Phase.GONE else list(state.restarts_at),
        "restart_marks": [] if state.phase is Phase.GONE else list(state.restarts),
        # GiB available before the ranks were started: what a stop waits for.
        "baseline": {str(rank): free for rank, free in state.baseline.items()},
        "last_error": state.last_error,
        # How many requests the last stop cut off.
        "cut": state.cut,
        "last_canary": _canary(state),
        "warnings": warnings(state),
        "progress": _progress(state, now),
    }


def write(path: Path, data: Mapping[str, Any]) -> None:
    """Replace the file in one step; anyone may read it."""
    write_atomically(path, data)


def restore(state: State, path: Path) -> State:
    """Take over what an earlier supervisor of this boot knew: restarts, rails, containers, memory."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["state"] == "down":
            # It ended in good order, or gave up: whoever starts it now wants a new beginning.
            return state
        marks = tuple(float(mark) for mark in data["restart_marks"])
        return replace(
            state,
            restarts=marks,
            restarts_at=tuple(data["restarts"]),
            baseline={int(rank): float(free) for rank, free in data["baseline"].items()},
            last_error=data["last_error"],
            known_digests=state.known_digests | {data["digest"]},
            link=_link(data["rails"]),
            ranks=_ranks(state, data["ranks"]),
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        # Nothing to take over, or a file of another version: what runs is found by looking.
        return state


def _ends(rail: Rail) -> dict[str, Any]:
    return {"head": rail[0].as_dict(), "worker": rail[1].as_dict()}


def _link(rails: Sequence[Mapping[str, Any]]) -> Link:
    unused = tuple(Unused(_rail(rail), rail["reason"]) for rail in rails if not rail["used"])
    return Link(
        tuple(_rail(rail) for rail in rails if rail["used"]),
        warnings=tuple(one.reason for one in unused),
        unused=unused,
    )


def _ranks(state: State, data: Sequence[Mapping[str, Any]]) -> tuple[RankView, ...]:
    """Which container each rank was: another one in its place cannot have joined its peer."""
    # What was seen last may be that other one already; an older release wrote only this.
    launched = {one["rank"]: one.get("launched", one["container"]) for one in data}
    return tuple(replace(view, launched=launched[view.rank]) for view in state.ranks)


def _rail(data: Mapping[str, Any]) -> Rail:
    return tuple(Endpoint(rank=rank, pci="", **data[name]) for rank, name in enumerate(("head", "worker")))


def _canary(state: State) -> dict[str, Any] | None:
    canary = state.canary
    if canary.ended is None:
        return None
    return {"at": canary.at, "seconds": round(canary.seconds, 2), "ok": canary.ok}


def _progress(state: State, now: float) -> dict[str, Any] | None:
    if state.phase is not Phase.LOAD:
        return None
    return {
        "elapsed_s": int(now - state.phase_at),
        "gpu_gib": [view.gpu_gib for view in state.ranks],
        "step": state.ranks[0].step or None,
        "log_line": state.ranks[0].log_line,
    }
