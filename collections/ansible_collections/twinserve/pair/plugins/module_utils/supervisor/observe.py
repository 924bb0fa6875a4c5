"""Taking in what came: answers change what is known, never what is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .events import Ask, Done, Logs, Look, Observation, Probe, Reach, Report, Start, Stop
from .proofs import hear, remarked
from .smoke import judge
from .state import ApiView, RankView, State, with_rank

_RUNS = frozenset({"active", "activating"})
# The container goes a moment before the client that is attached to it: then the next look has the exit code.
_STRAYS = 2


def absorb(state: State, observation: Observation, now: float) -> State:
    """Take in all answers. One that belongs to an earlier phase only ends its question."""
    state = replace(state, clock=observation.clock)
    for done in observation.done:
        state = replace(state, pending=state.pending - {done.action})
        if done.action.epoch == state.epoch:
            state = _take(state, done, now)
    return state


def has_ended(view: RankView) -> str | None:
    """Say how a rank ended; None while it runs as launched (or was not seen since)."""
    if view.seen_at is None:
        return None
    if view.unit not in _RUNS:
        code = "" if view.exit_code is None else f" (code {view.exit_code})"
        return f"exited{code}" if code else "is gone"
    if view.launched and view.container and view.container != view.launched:
        return "was replaced by another container"
    if view.launched and view.strays >= _STRAYS:
        return "lost its container"
    return None


def counters(health: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """Return what grows only when work is done. Requests that arrive are none of it."""
    return tuple(
        (name, float(value))
        for name, value in sorted(health.items())
        if name.endswith("_total") and name != "requests_total" and isinstance(value, int | float)
    )


def _take(state: State, done: Done, now: float) -> State:
    match done.action:
        case Probe(rank=rank):
            return _probe(state, state.ranks[rank], done, now)
        case Look():
            return _look(state, done, now)
        case Ask():
            return _reply(state, done, now)
        case Stop(rank=rank):
            return _stopped(_answer(state, rank, done), rank, done)
        case Logs(rank=rank):
            heard = state if done.error is not None else hear(state, rank, done.value)
            return _answer(heard, rank, done)
        case Report(rank=rank) | Reach(rank=rank) | Start(rank=rank):
            return _answer(state, rank, done)
    return state


def _answer(state: State, rank: int, done: Done) -> State:
    if done.error is not None:
        return replace(state, problems={**state.problems, rank: done.error})
    return replace(state, answers={**state.answers, rank: done.value})


def _stopped(state: State, rank: int, done: Done) -> State:
    if done.error is not None:
        return state
    view = RankView(rank, state.ranks[rank].name, unit="inactive")
    return with_rank(state, view)


def _probe(state: State, view: RankView, done: Done, now: float) -> State:
    if done.error is not None:
        return with_rank(state, replace(view, misses=view.misses + 1, missed=done.error))
    seen, container = done.value, done.value["container"] or {}
    fresh = replace(
        view,
        unit=seen["unit"],
        container=container.get("id"),
        running=bool(container.get("running")),
        exit_code=seen["exit_code"],
        gpu_gib=seen["gpu_gib"],
        memory_gib=seen["memory_gib"],
        log_line=seen["log"][-1] if seen["log"] else None,
        dark=tuple(seen["dark"]),
        starved=seen["starved"],
        warnings=tuple(seen["warnings"]),
        remarks=remarked(view.remarks, seen["log"], state.config),
        seen_at=now,
        asked_at=now - done.seconds,
        strays=view.strays + 1 if seen["unit"] == "active" and not container.get("running") else 0,
        misses=0,
        missed="",
    )
    grew = any(
        (now_gib or 0.0) > (then or 0.0)
        for now_gib, then in ((fresh.gpu_gib, view.gpu_gib), (fresh.memory_gib, view.memory_gib))
    )
    progressed = grew or fresh.log_line != view.log_line
    state = with_rank(state, replace(fresh, **_told(state, seen["log"])))
    return replace(state, progress_at=now) if progressed else state


def _told(state: State, log: Sequence[str]) -> dict[str, Any]:
    """Return what the engine's known lines say of its progress: the last of each kind."""
    told: dict[str, Any] = {}
    for line in log:
        for pattern in state.config.progress:
            said = found.groupdict() if (found := pattern.search(line)) else {}
            told |= {name: said[name] for name in ("step", "estimate_gib") if said.get(name)}
    return told


def _look(state: State, done: Done, now: float) -> State:
    if done.error is not None:
        # Ranks that were found running without an API are still loading: wait for them as for our own.
        api = replace(state.api, model=None, problem=done.error, misses=state.api.misses + 1)
        return replace(state, api=api, adopted=False)
    health = done.value["health"]
    running = int(health.get("requests_running", 0) or 0)
    canary, began = state.canary, now - done.seconds
    # One that ended meanwhile may have run when the server counted.
    ours = any(isinstance(action, Ask) for action in state.pending) or (canary.ended or 0.0) > began
    api = ApiView(done.value["model"], health=health, others=max(0, running - ours))
    alive = counters(api.health) != counters(state.api.health)
    canary = replace(canary, uncounted=0)
    return replace(state, api=api, canary=canary, vital_at=now if alive else state.vital_at)


def _reply(state: State, done: Done, now: float) -> State:
    canary = replace(
        state.canary,
        ended=now,
        at=state.clock,
        seconds=done.seconds,
        hopeless=False,
        uncounted=state.canary.uncounted + 1,
    )
    if done.error is not None:
        return replace(state, canary=replace(canary, ok=False, bad=canary.bad + 1, detail=done.error))
    verdict = judge(done.value)
    if verdict.ok:
        return replace(state, canary=replace(canary, ok=True, bad=0, detail=""), vital_at=now, proved=True)
    if verdict.busy:
        return replace(state, canary=replace(canary, detail=verdict.detail))
    failed = replace(canary, ok=False, bad=canary.bad + 1, hopeless=verdict.hopeless, detail=verdict.detail)
    return replace(state, canary=failed)
