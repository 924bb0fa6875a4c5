"""Before a start: what is there? Adopt it, clear it away, or find the rails for a start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..rails import Link, drift, pair_rails, rank_name, without_rails
from ..reach import Target
from ..render import digest
from ..selection import SelectionError, select_devices, unmatched
from ..sysfs import Device
from .events import Action, Reach, Report, Say
from .memory import memory_back
from .state import ApiView, Canary, Moved, Phase, State, ask, enter, with_rank

# How often a start that cannot go on looks again, in seconds.
_AGAIN = 2.0
_MEMORY_AGAIN = 1.5
_REPORTS = Mapping[int, Mapping[str, Any]]


def look(state: State, now: float) -> Moved:
    """Wait until all nodes have reported, however long that takes: after a power cut one may be late."""
    asked: list[Action] = []
    for view in state.ranks:
        if view.rank not in state.answers:
            state, more = ask(state, Report(state.epoch, view.rank), now, _AGAIN)
            asked += more
    if len(state.answers) == len(state.ranks):
        return _decide(state, now)
    silent = [rank for rank in state.problems if rank not in state.answers]
    if silent:
        text = f"{rank_name(silent[0])} {state.ranks[silent[0]].name} {state.problems[silent[0]]}"
        asked += _news(state, text)
        state = _block(state, text, now)
    return state, tuple(asked)


def reach(state: State, now: float) -> Moved:
    """Prove every rail, both ways, with full-size packets."""
    asked: list[Action] = []
    for view in state.ranks:
        state, more = ask(
            state, Reach(state.epoch, view.rank, _targets(state.link, view.rank)), now, float("inf")
        )
        asked += more
    if len(state.answers) + len(state.problems) < len(state.ranks):
        return state, tuple(asked)
    if state.problems:
        rank = min(state.problems)
        return _wait(state, f"{rank_name(rank)} {state.ranks[rank].name} {state.problems[rank]}", now)
    link = without_rails(state.link, _dead(state), state.config.rails, state.config.max_rails)
    if link.errors:
        return _wait(state, "; ".join(link.errors), now)
    said = [Say(state.epoch, text) for text in (*link.warnings, *state.notes, link.summary())]
    return enter(state, Phase.LAUNCH, now, link=link, blocked=None), tuple(said)


def _decide(state: State, now: float) -> Moved:
    reports: _REPORTS = state.answers
    found = {rank: report["container"] for rank, report in reports.items() if report["container"]}
    if len(found) == len(state.ranks) and all(one["running"] for one in found.values()):
        running = digest([found[rank]["digest"] for rank in sorted(found)])
        if running in state.known_digests:
            return _adopt(state, running, now)
        return _clear(
            state, "the ranks that run have another configuration: stopping them, then starting both", now
        )
    if found:
        return _clear(state, _leftovers(found), now)
    if refusal := _refusal(state, reports):
        reason = replace(state, last_error=refusal)
        return enter(reason, Phase.DOWN, now, reason=refusal, blocked=None), (
            Say(state.epoch, f"down: {refusal}"),
        )
    try:
        devices = [_devices(state, reports, rank) for rank in sorted(reports)]
    except SelectionError as error:
        return _wait(state, str(error), now)
    if alone := unmatched(devices, [member.nccl_ib_hca for member in state.config.members]):
        return _wait(state, "; ".join(alone), now)
    free = {rank: float(report["memory"]["available_gib"]) for rank, report in reports.items()}
    memory = memory_back(state, free, now)
    state = replace(state, available=free)
    if memory.waiting:
        return _again(state, now, _MEMORY_AGAIN, memory.waiting), ()
    link = pair_rails(devices, state.config.rails, state.config.max_rails, state.config.comm)
    notes = [memory.note] * bool(memory.note) + _drift(reports)
    if link.errors:
        lost = [note for note in notes if " lost " in note or " is gone" in note]
        return _wait(state, "; ".join([*link.errors, *lost]), now)
    changes: dict[str, Any] = {"link": link, "notes": tuple(notes), "baseline": free, "emptied_at": None}
    return enter(state, Phase.REACH, now, waiting="", **changes), ()


def _adopt(state: State, running: str, now: float) -> Moved:
    """Take over a pair that runs: the supervisor was away, the ranks were not."""
    reports: _REPORTS = state.answers
    for view in state.ranks:
        container = reports[view.rank]["container"]["id"]
        state = with_rank(state, replace(view, launched=container, container=container, running=True))
    if not state.link.rails:
        devices = [[Device.from_json(one) for one in reports[rank]["devices"]] for rank in sorted(reports)]
        state = replace(
            state, link=pair_rails(devices, state.config.rails, state.config.max_rails, state.config.comm)
        )
    older = running != state.config.digest
    note = (
        ("an older configuration is served: run the serve playbook to apply the newer one",) if older else ()
    )
    adopted = enter(
        replace(state, digest=running, notes=note, proved=False, canary=Canary(), api=ApiView()),
        Phase.LOAD,
        now,
        progress_at=now,
        vital_at=now,
        blocked=None,
        adopted=True,
    )
    return adopted, (Say(state.epoch, "both ranks run already: adopting them"),)


def _clear(state: State, reason: str, now: float) -> Moved:
    return enter(state, Phase.HALT, now, after=Phase.LOOK, reason=reason), (Say(state.epoch, reason),)


def _leftovers(found: Mapping[int, Mapping[str, Any]]) -> str:
    running = [rank for rank, one in found.items() if one["running"]]
    if len(running) == 1:
        return f"only rank {running[0]} is running: stopping it, then starting both"
    return "ranks of an earlier start are left: removing them, then starting both"


def _refusal(state: State, reports: _REPORTS) -> str | None:
    """Say why starting is useless until a playbook has run."""
    version = reports[0]["version"]
    for rank, report in reports.items():
        name = f"{rank_name(rank)} {state.ranks[rank].name}"
        if report["version"] != version:
            return f"{name} has runtime {report['version']}, the head has {version}: run the serve playbook"
        if not report["plan"]:
            return f"{name} has no rank plan (/etc/twinserve/rank.json): run the serve playbook"
    planned = digest([reports[rank]["plan"]["digest"] for rank in sorted(reports)])
    if planned != state.config.digest:
        return "the ranks' plans and the pair's configuration do not belong together: run the serve playbook"
    return None


def _devices(state: State, reports: _REPORTS, rank: int) -> list[Device]:
    """Return a rank's devices, as far as the settings let them be used."""
    member = state.config.members[rank]
    devices = [Device.from_json(one) for one in reports[rank]["devices"]]
    return select_devices(devices, member.nccl_ib_hca, member.fabric_netdev, rank_name(rank))


def _drift(reports: _REPORTS) -> list[str]:
    notes = []
    for rank in sorted(reports):
        devices = [Device.from_json(one) for one in reports[rank]["devices"]]
        notes += [
            f"rank {rank}: {note}"
            for note in drift(reports[rank]["plan"].get("expected_link") or [], devices)
        ]
    return notes


def _targets(link: Link, rank: int) -> tuple[Target, ...]:
    return tuple(
        Target(rail[rank].netdev, peer.address, rail[rank].mtu)
        for rail in link.rails
        for peer in rail
        if peer.rank != rank
    )


def _dead(state: State) -> dict[int, str]:
    """Return the rails on which a ping failed, with the reason of the first that did."""
    dead: dict[int, str] = {}
    for rank in sorted(state.answers):
        failed = {
            (one["netdev"], one["target"]): one["detail"] for one in state.answers[rank] if not one["ok"]
        }
        for number, rail in enumerate(state.link.rails):
            for peer in rail:
                if detail := failed.get((rail[rank].netdev, peer.address)):
                    dead.setdefault(number, f"{rank_name(rank)} to {peer.address}, {detail}")
    return dead


def _block(state: State, why: str, now: float) -> State:
    if state.blocked is None:
        return replace(state, blocked=why, blocked_at=now)
    return replace(state, blocked=why)


def _news(state: State, why: str) -> list[Action]:
    """Say once what is being waited for."""
    return [] if state.blocked == why else [Say(state.epoch, f"waiting: {why}")]


def _wait(state: State, why: str, now: float) -> Moved:
    """The link is not as it must be. Look again: cables and addresses come back without us."""
    news = _news(state, why)
    return _again(_block(state, why, now), now, 0.0), tuple(news)


def _again(state: State, now: float, early: float, waiting: str = "") -> State:
    """Look again, `early` seconds before the usual time: the reports of a moment ago would say the same."""
    state = enter(state, Phase.LOOK, now, waiting=waiting)
    return replace(state, asked={f"{Report.__name__} {view.rank}": now - early for view in state.ranks})
