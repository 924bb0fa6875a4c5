"""Before a start: what is there? Adopt it, clear it away, refuse to start, or go on to the link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..link import told_rails
from ..rails import rank_name
from ..render import digest
from .events import Action, Report, Say
from .linking import expected_rails, find_link, pair_link
from .patience import AGAIN, block, wait
from .state import ApiView, Canary, Moved, Phase, State, ask, enter, with_rank

_REPORTS = Mapping[int, Mapping[str, Any]]


def look(state: State, now: float) -> Moved:
    """Wait until all nodes have reported, however long that takes: after a power cut one may be late."""
    asked: list[Action] = []
    for view in state.ranks:
        if view.rank not in state.answers:
            state, more = ask(state, Report(state.epoch, view.rank), now, AGAIN)
            asked += more
    if len(state.answers) == len(state.ranks):
        return _decide(state, now)
    silent = [rank for rank in state.problems if rank not in state.answers]
    if silent:
        text = f"{rank_name(silent[0])} {state.ranks[silent[0]].name} {state.problems[silent[0]]}"
        state, more = block(state, text, now)
        asked += more
    return state, tuple(asked)


def _decide(state: State, now: float) -> Moved:
    reports: _REPORTS = state.answers
    found = {rank: report["container"] for rank, report in reports.items() if report["container"]}
    if len(found) == len(state.ranks) and all(one["running"] for one in found.values()):
        running = digest([found[rank]["digest"] for rank in sorted(found)])
        if text := _replaced(state, found):
            return _clear(state, text, now, kill=True)
        if running in state.known_digests:
            return _adopt(state, running, now)
        text = "the ranks that run have another configuration: stopping them, then starting both"
        return _clear(state, text, now)
    if found:
        return _clear(state, _leftovers(found), now, kill=True)
    if refusal := _refusal(state, reports):
        changes: dict[str, Any] = {"reason": refusal, "last_error": refusal, "blocked": None}
        return enter(state, Phase.DOWN, now, **changes), (Say(state.epoch, f"down: {refusal}"),)
    hindrances = [
        f"{rank_name(rank)} {state.ranks[rank].name}: {text}"
        for rank, report in sorted(reports.items())
        for text in report.get("hindrances", [])
    ]
    return wait(state, "; ".join(hindrances), now) if hindrances else find_link(state, now)


def _adopt(state: State, running: str, now: float) -> Moved:
    """Take over a pair that runs: the supervisor was away, the ranks were not."""
    reports: _REPORTS = state.answers
    for view in state.ranks:
        container = reports[view.rank]["container"]["id"]
        state = with_rank(state, replace(view, launched=container, container=container, running=True))
    # What the ranks were started with, not what they would get now.
    if rails := told_rails([reports[rank].get("link") for rank in sorted(reports)]):
        state = replace(state, link=replace(state.link, rails=rails))
    elif not state.link.rails:
        state = replace(state, link=pair_link(state))
    expected = expected_rails(reports)
    older = "an older configuration is served: run the serve playbook to apply the newer one"
    notes = () if running == state.config.digest else (older,)
    state = replace(state, digest=running, notes=notes, proved=False, canary=Canary(), api=ApiView())
    state = replace(state, expected_rails=expected)
    adopted = enter(
        state, Phase.LOAD, now, progress_at=now, vital_at=now, blocked=None, adopted=True, found=True
    )
    return adopted, (Say(state.epoch, "both ranks run already: adopting them"),)


def _clear(state: State, reason: str, now: float, kill: bool = False) -> Moved:
    """Stop what runs, with `kill` at once: half a pair has nothing to finish, and may not hear a signal."""
    moved = enter(state, Phase.HALT, now, after=Phase.LOOK, reason=reason, kill=kill)
    return moved, (Say(state.epoch, reason),)


def _replaced(state: State, found: Mapping[int, Mapping[str, Any]]) -> str | None:
    """Say which rank was started alone while no supervisor watched: such a rank cannot rejoin its peer."""
    for view in state.ranks:
        if view.launched and view.launched != found[view.rank]["id"]:
            return f"rank {view.rank} was replaced by another container: stopping both, then starting both"
    return None


def _leftovers(found: Mapping[int, Mapping[str, Any]]) -> str:
    running = [rank for rank, one in found.items() if one["running"]]
    if len(running) == 1:
        return f"only rank {running[0]} is running: stopping it, then starting both"
    return "ranks of an earlier start are left: removing them, then starting both"


def _refusal(state: State, reports: _REPORTS) -> str | None:
    """Say why starting is useless until a playbook has run."""
    version = reports[0]["version"]
    for rank, report in sorted(reports.items()):
        name = f"{rank_name(rank)} {state.ranks[rank].name}"
        if report["version"] != version:
            return f"{name} has runtime {report['version']}, the head has {version}: run the serve playbook"
        if not report["plan"]:
            return f"{name} has no rank plan (/etc/twinserve/rank.json): run the serve playbook"
    planned = digest([reports[rank]["plan"]["digest"] for rank in sorted(reports)])
    if planned != state.config.digest:
        return "the ranks' plans and the pair's configuration do not belong together: run the serve playbook"
    return None
