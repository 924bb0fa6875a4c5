"""A start: workers first, then the head, then wait for the server and ask it something."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from .ending import fail, refuse
from .events import Action, Ask, Logs, Look, Probe, Say, Start
from .observe import has_ended
from .proofs import missing
from .state import ApiView, Canary, Moved, Phase, RankView, State, ask, enter, title, with_rank
from .verdict import alarm

_PROBE_EVERY = 1.0
_LOOK_EVERY = 0.2
_LISTEN_EVERY = 10.0
# NCCL says within its first few hundred lines what it runs over.
_LINES = 2000
_MISSES = 3
_SMOKE_TIMEOUT = 180.0
# Seconds that a rank which answers is kept from serving because its log cannot be read.
_UNHEARD = 60.0
# However much progress there is: no start takes so many times the wait_timeout.
_CAP = 4


def launch(state: State, now: float) -> Moved:
    """Start rank after rank; each must have a container before the next is started."""
    if state.problems:
        rank = min(state.problems)
        return fail(state, f"{title(state, rank)} did not start: {state.problems[rank]}", now, True, rank)
    for rank in state.config.start_order:
        if rank in state.answers:
            continue
        return ask(state, Start(state.epoch, rank, _told(state, rank)), now, float("inf"))
    for rank, container in state.answers.items():
        # A clean slate: what an earlier container said, used or missed is nothing of this one.
        name, made = state.ranks[rank].name, container["id"]
        state = with_rank(state, RankView(rank, name, "active", made, running=True, launched=made))
    moved = enter(
        state,
        Phase.LOAD,
        now,
        progress_at=now,
        adopted=False,
        found=False,
        proved=False,
        api=ApiView(),
        canary=Canary(),
    )
    return moved, (Say(moved.epoch, "all ranks are started, loading"),)


def load(state: State, now: float) -> Moved:
    """Wait for the server, with both eyes on the ranks. The limit counts from the last sign of progress."""
    if starved := _starved(state):
        return refuse(state, starved, now, kill=True)
    if dead := _dead(state):
        return fail(state, f"{dead[1]} before the server was ready", now, True, dead[0])
    if state.api.model and state.adopted:
        return enter(state, Phase.SERVE, now), ()
    if heard := alarm(state.answers, state.config):
        return refuse(state, heard, now, kill=True)
    if state.api.model:
        return enter(state, Phase.SMOKE, now), ()
    quiet, waited = now - state.progress_at, now - state.phase_at
    if quiet > state.config.wait_timeout or waited > _CAP * state.config.wait_timeout:
        text = f"not ready after {waited:.0f} s, {quiet:.0f} s without progress; the ranks are still running"
        if state.api.problem:
            text += f"; {state.api.problem}"
        if state.found:
            # They may have served for days: no start that somebody wants to look at.
            return fail(state, text, now, early=True)
        return refuse(state, text, now, keep=True)
    state, probes = _probe_all(state, now, _PROBE_EVERY)
    state, looks = ask(state, Look(state.epoch), now, _LOOK_EVERY)
    state, logs = _listen(state, now)
    return state, (*probes, *looks, *logs)


def smoke(state: State, now: float) -> Moved:
    """Ask for a tiny completion: a model that answers nonsense must not serve."""
    if dead := _dead(state):
        return fail(state, f"{dead[1]} before the server was ready", now, True, dead[0])
    if heard := alarm(state.answers, state.config):
        return refuse(state, heard, now)
    canary = state.canary
    # Also a start that was too quick to be listened to has said by now what it runs over.
    unheard = _unheard(state)
    # Ranks that were found may have served for days, and their first lines be forgotten.
    lacking = "" if state.found else missing(state)
    patient = bool(unheard or (lacking and canary.ok)) and now - state.phase_at < _UNHEARD
    if not patient and canary.ended is not None and canary.ended >= state.phase_at:
        if canary.ok:
            if lacking:
                return refuse(state, lacking, now)
            moved = enter(state, Phase.SERVE, now, vital_at=now)
            return moved, tuple(Say(moved.epoch, text) for text in unheard)
        if canary.hopeless:
            return refuse(state, f"smoke test: {canary.detail}", now)
        if canary.bad:
            return fail(state, f"smoke test: {canary.detail}", now)
        # Busy: somebody was faster. Ask again.
        state = replace(state, canary=replace(canary, ended=None))
    asked: tuple[Action, ...] = ()
    if canary.ended is None or canary.ended < state.phase_at:
        state, asked = ask(state, Ask(state.epoch, state.api.model or "", _SMOKE_TIMEOUT), now, _PROBE_EVERY)
    state, probes = _probe_all(state, now, _PROBE_EVERY)
    state, logs = _listen(state, now)
    return state, (*asked, *probes, *logs)


def _dead(state: State) -> tuple[int, str] | None:
    """Say which rank ended, or cannot be seen any more: one missed look is not a death, three are."""
    for view in state.ranks:
        if how := has_ended(view):
            return view.rank, f"rank {view.rank} {how}"
        if view.misses >= _MISSES:
            return (
                view.rank,
                f"{title(state, view.rank)} could not be seen {view.misses} times ({view.missed})",
            )
    return None


def _starved(state: State) -> str | None:
    """Say on which node the driver got no memory: what comes next is a node that answers nobody.

    Ranks that were found running may have served since.
    """
    for view in state.ranks if not state.found else ():
        if view.starved:
            return (
                f"{title(state, view.rank)}: the NVIDIA driver ran out of memory while loading "
                f"({view.starved}); stop other work there, or set load_guard: true"
            )
    return None


def _probe_all(state: State, now: float, every: float) -> Moved:
    asked: list[Action] = []
    for view in state.ranks:
        state, more = ask(state, Probe(state.epoch, view.rank, loading=True), now, every)
        asked += more
    return state, tuple(asked)


def _listen(state: State, now: float) -> Moved:
    """Fetch what the ranks print, where there are lines that must, or must not, be among it."""
    asked: list[Action] = []
    for view in state.ranks if state.config.listens and not state.adopted else ():
        state, more = ask(state, Logs(state.epoch, view.rank, _LINES), now, _LISTEN_EVERY)
        asked += more
    return state, tuple(asked)


def _unheard(state: State) -> list[str]:
    """Say of which ranks that are listened to nothing was heard in this phase, and why."""
    ranks = range(len(state.ranks)) if state.config.alarms or state.config.proofs else ()
    return [
        f"what {title(state, rank)} runs over is not known: its log could not be read "
        f"({state.problems.get(rank, 'no answer')})"
        for rank in ranks
        if rank not in state.answers
    ]


def _told(state: State, rank: int) -> str:
    """Return what a rank is told at its start, as JSON."""
    told = {
        "master": state.link.master,
        "rails": state.link.of_rank(rank),
        "append": list(_appended(state)),
        "env": dict(state.attempt.env),
    }
    return json.dumps(told, sort_keys=True)


def _appended(state: State) -> Iterable[str]:
    if state.attempt.window is not None:
        for word in state.config.refit_append:
            yield word.replace("{window}", str(state.attempt.window))
