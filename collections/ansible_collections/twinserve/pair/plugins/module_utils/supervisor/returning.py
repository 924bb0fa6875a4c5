"""While the pair serves with fewer rails than it could: is one back? Only a restart takes it in."""

from __future__ import annotations

from dataclasses import replace

from ..link import Link, summarize
from .events import Action, Reach, Report, Say
from .linking import dead_rails, pair_link, targets
from .state import Moved, State, ask

_EVERY = 60.0


def watch(state: State, now: float) -> Moved:
    """Ask the nodes what they have, prove a rail that the pair runs without, and say that it is back."""
    if not state.link.unused and len(state.link.rails) >= state.expected_rails:
        return state, ()
    if state.problems:
        # A node that does not answer says nothing about its rails. The others' answers are waited for: one
        # that came later would be taken for that of the next question.
        under_way = any(isinstance(action, Report | Reach) for action in state.pending)
        return (state if under_way else _begin_again(state)), ()
    if len(state.answers) < len(state.ranks):
        return _ask(state, now)
    if not state.extra.rails:
        extra = _extra(state)
        if extra.rails:
            return replace(state, extra=extra, answers={}), ()
        return replace(_begin_again(state), returned=""), ()
    dead = dead_rails(state.extra, state.answers)
    proved = [rail for number, rail in enumerate(state.extra.rails) if number not in dead]
    text = _text(Link(tuple(proved))) if proved else ""
    said = (Say(state.epoch, text),) if text and text != state.returned else ()
    return replace(_begin_again(state), returned=text), said


def _ask(state: State, now: float) -> Moved:
    asked: list[Action] = []
    for view in state.ranks:
        action: Action = Report(state.epoch, view.rank)
        if state.extra.rails:
            action = Reach(state.epoch, view.rank, targets(state.extra, view.rank))
        if view.rank not in state.answers:
            state, more = ask(state, action, now, _EVERY)
            asked += more
    return state, tuple(asked)


def _begin_again(state: State) -> State:
    return replace(state, answers={}, problems={}, extra=Link())


def _extra(state: State) -> Link:
    """Return the rails that a start of now would try, without those that are in use."""
    used = [[end.hca for end in rail] for rail in state.link.rails]
    return Link(tuple(rail for rail in pair_link(state).rails if [end.hca for end in rail] not in used))


def _text(link: Link) -> str:
    devices = summarize([[end.hca for end in rail] for rail in link.rails]).partition(": ")[2]
    return f"{devices} carries packets again, and is not in use: systemctl restart twinserve takes it in"
