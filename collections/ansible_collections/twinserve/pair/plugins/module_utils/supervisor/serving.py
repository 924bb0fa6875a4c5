"""While the pair serves: a death is acted on at once, a hang by lack of progress, silent ssh not at all."""

from __future__ import annotations

from dataclasses import replace

from .ending import fail
from .events import Action, Ask, Look, Probe
from .observe import has_ended
from .returning import watch
from .state import Moved, State, ask

_PROBE_EVERY = 2.0
_LOOK_EVERY = 5.0
# A canary that failed, or a pair that has not proved itself yet, is asked again soon.
_SOON = 2.0
_MISSES = 3
_BAD = 2
# What a canary that failed waits for a look at the ranks: the end of one explains it better.
_EXPLAINED = 6.0
# A worker that cannot be seen while nothing comes out of the head: dead, if only our canary is waiting.
_OUTAGE = 60.0
# Seconds without a reply over a link that has lost a rail, and while the engine may wait for it itself.
_DARK, _DARK_BUSY = 15.0, 330.0
# The request of the canary has its own end well after we have judged it.
_GRACE = 60.0
# No counter moves while a prompt is read, which takes 16 minutes for a million tokens. Nothing that the
# engine says it is doing takes longer than this without a sign.
_READING = 1800.0


def serve(state: State, now: float) -> Moved:
    """Watch ranks, API and canary; any death, or a hang, ends this run of the pair."""
    state = _lights(state, now)
    for view in state.ranks:
        if how := has_ended(view):
            return fail(state, f"rank {view.rank} {how}", now, culprit=view.rank)
    if state.canary.bad >= _BAD and _explained(state, now):
        return fail(state, f"canary: {state.canary.detail}", now)
    if why := _hangs(state, now):
        return fail(state, why, now, kill=True)
    asked: list[Action] = []
    for view in state.ranks:
        state, more = ask(state, Probe(state.epoch, view.rank), now, _PROBE_EVERY)
        asked += more
    state, more = ask(state, Look(state.epoch), now, _LOOK_EVERY)
    asked += more
    for watched in (_canary, watch):
        state, more = watched(state, now)
        asked += more
    return state, tuple(asked)


def unseen(state: State, now: float) -> tuple[int, float] | None:
    """Return the rank that ssh does not reach any more, and for how many seconds; None when all are seen."""
    for view in state.ranks:
        if view.misses >= _MISSES:
            return view.rank, now - max(view.seen_at or 0.0, state.phase_at)
    return None


def waiting(state: State) -> bool:
    """Whether a canary is under way."""
    return any(isinstance(action, Ask) for action in state.pending)


def _explained(state: State, now: float) -> bool:
    """Whether all ranks were found running after the canary failed, or one cannot be seen soon."""
    failed = state.canary.ended or 0.0
    alive = (not view.strays and (view.asked_at or 0.0) >= failed for view in state.ranks)
    return now - failed > _EXPLAINED or all(alive)


def _hangs(state: State, now: float) -> str | None:
    """Say for how long nothing has come out of the pair; None while that is no reason to act."""
    canary = state.canary
    if not waiting(state) or canary.sent is None:
        return None
    silent = now - max(state.vital_at, canary.sent)
    if silent > (_longest(state) if _works(state) else state.config.hang_limit):
        return f"no progress for {silent:.0f} s: the canary has no answer and the counters stand still"
    since = now if state.dark_at is None else state.dark_at
    if min(silent, now - since) > (_DARK_BUSY if _works(state) else _DARK):
        return f"{_dark(state)} has no carrier and nothing has moved for {silent:.0f} s"
    alone = _running(state) <= 1
    lost = unseen(state, now)
    if lost and alone and silent > _OUTAGE and lost[1] > _OUTAGE:
        return (
            f"rank {lost[0]} unreachable for {lost[1]:.0f} s and the canary has no answer for {silent:.0f} s"
        )
    return None


def _lights(state: State, now: float) -> State:
    """Note since when a rail in use has been dark."""
    if not _dark(state):
        return replace(state, dark_at=None, short_at=None)
    # The next start need not wait for it again.
    return replace(state, dark_at=now, short_at=now) if state.dark_at is None else state


def _dark(state: State) -> str:
    return "; ".join(f"{port} of {state.ranks[view.rank].name}" for view in state.ranks for port in view.dark)


def _works(state: State) -> bool:
    """Whether the engine runs anything but our canary, which may wait behind a prompt that takes long."""
    canary, running = state.canary, _running(state)
    ours = canary.quiet and running <= 1 and _total(state) - canary.total <= 1
    # An engine that does not even answer /health any more is at nothing, whatever it said last.
    return running > 0 and not ours and not state.deaf


def _running(state: State) -> int:
    return int(state.api.health.get("requests_running", 0) or 0)


def _total(state: State) -> float:
    return float(state.api.health.get("requests_total", 0) or 0)


def _longest(state: State) -> float:
    return max(state.config.hang_limit, _READING)


def _canary(state: State, now: float) -> Moved:
    """Send the canary when it is due: at its interval, or soon after doubt arose."""
    if waiting(state):
        return state, ()
    canary = state.canary
    doubt = canary.bad > 0 or not state.proved or unseen(state, now) is not None or bool(_dark(state))
    due = _SOON if doubt else state.config.canary_interval
    if canary.ended is not None and now - canary.ended < due:
        return state, ()
    timeout = _longest(state) + _GRACE
    state, asked = ask(state, Ask(state.epoch, state.api.model or state.config.served_name, timeout), now)
    quiet, total = state.api.others == 0, _total(state) + canary.uncounted
    return replace(state, canary=replace(canary, sent=now, quiet=quiet, total=total)), asked
