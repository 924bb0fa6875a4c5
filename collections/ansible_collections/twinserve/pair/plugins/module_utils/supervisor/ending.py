"""When a run of the pair ends: gather what the ranks said, stop all, and decide what comes next."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from .draining import drain
from .events import Action, Exit, Logs, Probe, Report, Say, Stop
from .memory import memory_back, overdue
from .patience import AGAIN, again
from .state import ApiView, Attempt, Canary, Moved, Phase, State, ask, enter, recent_restarts
from .verdict import Next, alarm, explain, judge, lines_of

# For patterns; people get the last of them.
_LINES = 200
_SHOWN = 25
# A rank whose log or end cannot be had must not hold up the others.
_COLLECT_LIMIT = 20.0
_SOON = 0.5


def fail(
    state: State, why: str, now: float, early: bool = False, culprit: int | None = None, kill: bool = False
) -> Moved:
    """A rank died, or the pair hangs. Logs first: what comes next depends on them, and stopping ends them.

    `early`: before the server was ready. Then, and with `kill`, the ranks get no time to finish.
    """
    left = {view.rank for view in state.ranks} - set(state.answers) - {culprit}
    moved = enter(
        state,
        Phase.COLLECT,
        now,
        failure=why,
        early=early,
        culprit=culprit,
        unstarted=frozenset(left) if state.phase is Phase.LAUNCH else frozenset(),
        kill=early or kill,
    )
    said = [Say(moved.epoch, f"failed: {why}")]
    if state.phase is Phase.SERVE and state.api.health:
        said.append(Say(moved.epoch, f"last /health: {json.dumps(dict(state.api.health), sort_keys=True)}"))
    return moved, tuple(said)


def refuse(state: State, why: str, now: float, keep: bool = False, kill: bool = False) -> Moved:
    """Stay down: trying again cannot help. With `keep` the ranks are left for inspection.

    `kill`: they are loading, and would not hear a polite signal.
    """
    said = (Say(state.epoch, f"down: {why}"),)
    changes: dict[str, Any] = {"reason": why, "last_error": why, "attempt": Attempt()}
    if keep:
        return enter(state, Phase.DOWN, now, left_running=True, **changes), said
    return enter(state, Phase.HALT, now, after=Phase.DOWN, kill=state.kill or kill, **changes), said


def collect(state: State, now: float) -> Moved:
    """Fetch the last lines of all ranks, and how they ended."""
    asked: list[Action] = []
    for view in state.ranks:
        for action in (Logs(state.epoch, view.rank, _LINES), Probe(state.epoch, view.rank)):
            state, more = ask(state, action, now, float("inf"))
            asked += more
    missing = [action for action in state.pending if action.epoch == state.epoch]
    if missing and now - state.phase_at < _COLLECT_LIMIT:
        return state, tuple(asked)
    return _decide(state, now)


def halt(state: State, now: float) -> Moved:
    """Stop all ranks in the engine's order, then go where `after` says."""
    state, drained = drain(state, now)
    if state.drain_until is not None or state.starting:
        return state, drained
    asked: list[Action] = [*drained]
    settled = set(state.answers) | set(state.problems)
    for group in _stop_groups(state):
        for rank in group:
            state, more = ask(state, Stop(state.epoch, rank, state.kill), now, float("inf"))
            asked += more
        if not set(group) <= settled:
            return state, tuple(asked)
    asked += [
        Say(state.epoch, f"rank {rank} was not stopped: {why}")
        for rank, why in sorted(state.problems.items())
    ]
    changes: dict[str, Any] = {"api": ApiView(), "canary": Canary(), "proved": False}
    state = enter(state, state.after, now, emptied_at=now, available={}, kill=False, **changes)
    return state, tuple(asked)


def down(state: State, now: float) -> Moved:
    """Stay down and say why, until somebody restarts the service."""
    if not state.left_running:
        return state, ()
    asked: list[Action] = []
    for view in state.ranks:
        state, more = ask(state, Probe(state.epoch, view.rank), now, 10.0)
        asked += more
    return state, tuple(asked)


def empty(state: State, now: float) -> Moved:
    """All is stopped. Wait for the memory too: who starts something next must find it."""
    asked: list[Action] = []
    for view in state.ranks:
        if view.rank not in state.answers and view.rank not in state.problems:
            state, more = ask(state, Report(state.epoch, view.rank), now, AGAIN)
            asked += more
    if len(state.answers) + len(state.problems) < len(state.ranks) and not overdue(state, now):
        return state, tuple(asked)
    # A node that cannot be asked is not waited for, but what it said last is not forgotten.
    free = {rank: float(report["memory"]["available_gib"]) for rank, report in state.answers.items()}
    free = {**state.available, **free}
    memory = memory_back(state, free, now)
    if memory.waiting:
        return again(replace(state, available=free), now, _SOON, memory.waiting, Phase.EMPTY), tuple(asked)
    said = (Say(state.epoch, memory.note),) if memory.note else ()
    return enter(state, Phase.GONE, now, reason=memory.note), (*asked, *said)


def gone(state: State, now: float) -> Moved:
    """All is stopped: go."""
    return ask(state, Exit(state.epoch), now, float("inf"))


def _decide(state: State, now: float) -> Moved:
    said = [
        Say(state.epoch, f"rank {rank}: {line}")
        for rank in sorted(state.answers)
        for line in _tail(state.answers[rank])
    ]
    said += [Say(state.epoch, f"rank {rank}: no log: {why}") for rank, why in sorted(state.problems.items())]
    logs = {rank: log for rank, log in state.answers.items() if rank not in state.unstarted}
    lines = lines_of(logs, state.culprit)
    if state.early:
        if heard := alarm(logs, state.config):
            state, more = refuse(state, heard, now)
            return state, (*said, *more)
        codes = [view.exit_code for view in state.ranks if view.rank not in state.unstarted]
        verdict = judge(state.failure, lines, codes, state.config, state.attempt)
        said.append(Say(state.epoch, verdict.reason))
        if verdict.next is Next.AGAIN:
            moved = enter(
                state,
                Phase.HALT,
                now,
                after=Phase.LOOK,
                reason=verdict.reason,
                attempt=verdict.attempt,
            )
            return moved, tuple(said)
        if verdict.next is Next.REFUSED:
            state, more = refuse(state, verdict.reason, now)
            return state, (*said, *more)
        reason = verdict.reason
    else:
        reason = explain(state.failure, lines, state.config) if _known(state, lines) else state.failure
    state, more = _restart(state, reason, now)
    return state, (*said, *more)


def _restart(state: State, why: str, now: float) -> Moved:
    """Start the pair again, a bounded number of times in a window; then stay down."""
    limit, window = state.config.restart_limit, state.config.restart_window
    recent = recent_restarts(state, now)
    state = replace(state, last_error=why, attempt=Attempt())
    if len(recent) >= limit:
        return refuse(state, f"gave up after {len(recent)} restarts; last error: {why}", now)
    recent.append((now, state.clock))
    text = f"restart {len(recent)} of {limit} in {window:.0f} s: {why}"
    moved = enter(
        state,
        Phase.HALT,
        now,
        after=Phase.LOOK,
        reason=text,
        restarts=tuple(at for at, _ in recent),
        restarts_at=tuple(wall for _, wall in recent),
    )
    return moved, (Say(moved.epoch, text),)


def _known(state: State, lines: list[str]) -> bool:
    return any(failure.pattern.search(line) for failure in state.config.failures for line in lines)


def _tail(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()][-_SHOWN:]


def _stop_groups(state: State) -> list[list[int]]:
    ranks = [view.rank for view in state.ranks]
    return [[0], ranks[1:]] if state.config.stop_order == "head_first" else [ranks]
