"""Before an orderly stop: the requests that run may come to their end for a while; the others are counted."""

from __future__ import annotations

from dataclasses import replace

from .events import Ask, Look, Say
from .state import Moved, State, ask

_EVERY = 1.0
# An API that gives no answer does not hold up a stop for longer.
_PATIENCE = 5.0


def drain(state: State, now: float) -> Moved:
    """Look how many requests run. It is over when `drain_until` is None; `cut` is how many are left then."""
    until = state.drain_until
    if until is None:
        return state, ()
    # Also when nothing is waited for: what was seen last may be seconds old.
    state, asked = ask(state, Look(state.epoch), now, _EVERY)
    if Look(state.epoch) in state.pending and now < max(until, state.phase_at + _PATIENCE):
        return state, asked
    # Requests that a server had which answers nothing any more are not waited for, nor cut off by us.
    count = 0 if state.deaf else running(state)
    if count and now < until:
        return state, asked
    state = replace(state, drain_until=None, cut=count)
    return state, (Say(state.epoch, f"stopping all ranks, {requests(count)} cut off"),) if count else ()


def running(state: State) -> int:
    """How many requests of others the server has, by its own counter."""
    own = sum(isinstance(action, Ask) for action in state.pending)
    return max(0, int(state.api.health.get("requests_running", 0) or 0) - own)


def requests(count: int) -> str:
    """Return the number with its noun."""
    return f"{count} request{'' if count == 1 else 's'}"
