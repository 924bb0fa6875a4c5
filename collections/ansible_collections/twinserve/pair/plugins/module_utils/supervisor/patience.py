"""A start that cannot go on yet: say why, once, and look again soon."""

from __future__ import annotations

from dataclasses import replace

from .events import Action, Report, Say
from .state import Moved, Phase, State, enter

# How often a start that cannot go on looks again, in seconds.
AGAIN = 2.0


def block(state: State, why: str, now: float) -> Moved:
    """Note what is in the way, and since when; it is said when it is news."""
    if state.blocked == why:
        return state, ()
    since = now if state.blocked is None else state.blocked_at
    said: tuple[Action, ...] = (Say(state.epoch, f"waiting: {why}"),)
    return replace(state, blocked=why, blocked_at=since), said


def wait(state: State, why: str, now: float) -> Moved:
    """Something is not as it must be. Look again: cables, addresses and nodes come back without us."""
    state, said = block(state, why, now)
    return again(state, now, AGAIN), said


def again(state: State, now: float, delay: float, waiting: str = "", phase: Phase = Phase.LOOK) -> State:
    """Ask for new reports after `delay` seconds: those of a moment ago would say the same."""
    state = enter(state, phase, now, waiting=waiting)
    asked = {f"{Report.__name__} {view.rank}": now - AGAIN + delay for view in state.ranks}
    return replace(state, asked=asked)
