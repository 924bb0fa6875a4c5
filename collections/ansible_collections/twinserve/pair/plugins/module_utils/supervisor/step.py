"""The supervisor as a pure function: what it knows and what came in give what it knows next and what to do.

Nothing here reads a clock, a file or a network; time comes in as a number, so that tests replay any story.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from . import ending, launching, linking, looking, serving
from .events import Action, Ask, Observation, Say
from .observe import absorb
from .state import Moved, Phase, State, enter
from .words import status

_PHASES: Mapping[Phase, Callable[[State, float], Moved]] = {
    Phase.LOOK: looking.look,
    Phase.REACH: linking.reach,
    Phase.LAUNCH: launching.launch,
    Phase.LOAD: launching.load,
    Phase.SMOKE: launching.smoke,
    Phase.SERVE: serving.serve,
    Phase.COLLECT: ending.collect,
    Phase.HALT: ending.halt,
    Phase.EMPTY: ending.empty,
    Phase.DOWN: ending.down,
    Phase.GONE: ending.gone,
}
# More phases in a row than a story has would be a loop.
_MOVES = 12


def step(state: State, observation: Observation, now: float) -> Moved:
    """Take in what came, then let phase after phase act until one waits for an answer or for time."""
    shown = state.shown
    state = absorb(state, observation, now)
    if observation.terminate and not state.quitting:
        state = _quit(state, now)
    actions: list[Action] = []
    for _ in range(_MOVES):
        before = state.epoch
        state, more = _PHASES[state.phase](state, now)
        actions += more
        if state.epoch == before:
            since = state.clock if state.shown != shown or not state.since else state.since
            if state.shown == "serving" != shown:
                actions.append(Say(state.epoch, status(state, now)))
            return replace(state, since=since), tuple(actions)
    raise RuntimeError(f"the supervisor goes round in circles in phase {state.phase}")


def _quit(state: State, now: float) -> State:
    """SIGTERM: stop all ranks, then go. Ranks that are being stopped already need no second order."""
    if state.phase is Phase.HALT:
        return replace(state, quitting=True, after=Phase.EMPTY)
    drain_until = now + state.config.drain_timeout if state.phase is Phase.SERVE else None
    # Our own canary is none of the requests that are waited for.
    canaries = frozenset(action for action in state.pending if isinstance(action, Ask))
    moved = enter(
        state,
        Phase.HALT,
        now,
        quitting=True,
        after=Phase.EMPTY,
        reason="asked to stop",
        drain_until=drain_until,
    )
    return replace(moved, pending=moved.pending | canaries)
