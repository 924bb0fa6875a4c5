"""The link of a start: which rails the nodes have now, and whether they carry full-size packets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .. import lost_device
from ..link import Endpoint, Link, Rail
from ..rails import drift, pair_rails, rank_name, without_rails
from ..reach import Target
from ..selection import SelectionError, select_devices, unmatched
from ..sysfs import Device
from .events import Action, Reach, Say
from .memory import memory_back
from .patience import again, wait
from .state import Moved, Phase, State, ask, enter

_SOON = 0.5
# A rail that was there when the configuration was written may come up a little after its twin.
_PATIENCE = 15.0
_REPORTS = Mapping[int, Mapping[str, Any]]


def find_link(state: State, now: float) -> Moved:
    """Pair the reported devices; wait for memory, for a link, or a little for its second rail."""
    reports: _REPORTS = state.answers
    free = {rank: float(report["memory"]["available_gib"]) for rank, report in reports.items()}
    memory = memory_back(state, free, now)
    state = replace(state, available=free)
    if memory.waiting:
        return again(state, now, _SOON, memory.waiting), ()
    if gone := _gone(reports):
        # A card that failed fails again: no start before the node had its power cut.
        return wait(state, "; ".join(gone), now)
    link = pair_link(state)
    notes = [memory.note] * bool(memory.note) + _drift(reports)
    if link.errors:
        lost = [note for note in notes if " lost " in note or " is gone" in note]
        return _without_any(state, "; ".join([*link.errors, *lost]), now)
    state = replace(state, expected_rails=expected_rails(reports))
    if _is_short(state, link, now):
        return _be_patient(state, link, now)
    changes: dict[str, Any] = {"link": link, "notes": tuple(notes), "baseline": free, "emptied_at": None}
    return enter(state, Phase.REACH, now, waiting="", **changes), ()


def reach(state: State, now: float) -> Moved:
    """Prove every rail, both ways, with full-size packets."""
    asked: list[Action] = []
    for view in state.ranks:
        action = Reach(state.epoch, view.rank, targets(state.link, view.rank))
        state, more = ask(state, action, now, float("inf"))
        asked += more
    if len(state.answers) + len(state.problems) < len(state.ranks):
        return state, tuple(asked)
    if state.problems:
        rank = min(state.problems)
        return wait(state, f"{rank_name(rank)} {state.ranks[rank].name} {state.problems[rank]}", now)
    dead = dead_rails(state.link, state.answers)
    link = without_rails(state.link, dead, state.config.rails, state.config.max_rails)
    if link.errors:
        return _without_any(state, "; ".join(link.errors), now)
    if _is_short(state, link, now):
        return _be_patient(state, link, now)
    why = [f"rail {number}: {dead[number]}" for number in sorted(dead)]
    said = [Say(state.epoch, text) for text in (*link.warnings, *why, *state.notes, link.summary())]
    return enter(state, Phase.LAUNCH, now, link=link, blocked=None, short_at=None), tuple(said)


def expected_rails(reports: _REPORTS) -> int:
    """Return how many rails the configuration was written for."""
    return min(len(report["plan"].get("expected_link") or []) for report in reports.values())


def pair_link(state: State) -> Link:
    """Pair what the settings allow; devices that they name and that face nothing are an error."""
    reports: _REPORTS = state.answers
    try:
        devices = [
            select_devices(
                [Device.from_json(one) for one in reports[member.rank]["devices"]],
                member.nccl_ib_hca,
                member.fabric_netdev,
                rank_name(member.rank),
            )
            for member in state.config.members
        ]
    except SelectionError as error:
        return Link(errors=(str(error),))
    if alone := unmatched(devices, [member.nccl_ib_hca for member in state.config.members]):
        return Link(errors=tuple(alone))
    mains = [member.fabric_netdev for member in state.config.members]
    return pair_rails(devices, state.config.rails, state.config.max_rails, state.config.comm, mains)


def targets(link: Link, rank: int) -> tuple[Target, ...]:
    """Return where a rank sends its packets."""
    return tuple(_target(rail, rail[rank], peer) for rail in link.rails for peer in rail if peer.rank != rank)


def dead_rails(link: Link, answers: Mapping[int, Any]) -> dict[int, str]:
    """Return the rails on which a rank's packets failed, with the reason of the first that did."""
    dead: dict[int, str] = {}
    for rank in sorted(answers):
        failed = {(one["netdev"], one["target"]): one["detail"] for one in answers[rank] if not one["ok"]}
        for number, rail in enumerate(link.rails):
            for peer in rail:
                if detail := failed.get((rail[rank].netdev, peer.address)):
                    dead.setdefault(number, f"{rank_name(rank)} to {peer.address}, {detail}")
    return dead


def _is_short(state: State, link: Link, now: float) -> bool:
    """Whether there are fewer rails than expected, and they have not been waited for long enough."""
    if state.config.rails == 1 or len(link.rails) >= state.expected_rails:
        return False
    return state.short_at is None or now - state.short_at < _PATIENCE


def _be_patient(state: State, link: Link, now: float) -> Moved:
    state = replace(state, blocked=None, short_at=now if state.short_at is None else state.short_at)
    why = link.warnings[-1] if link.warnings else "it has no address on one side"
    return again(state, now, _SOON, f"waiting a little for the second rail ({why})"), ()


def _without_any(state: State, why: str, now: float) -> Moved:
    """Wait for a rail. The patience with a second one begins when there is a first."""
    return wait(replace(state, short_at=None), why, now)


def _gone(reports: _REPORTS) -> list[str]:
    """Devices of the expected rails that a PCIe error took, as the kernel logs say."""
    return [
        f"{rank_name(rank)}: {lost_device.text(netdev, report['pcie_error'])}"
        for rank, report in sorted(reports.items())
        if report["pcie_error"]
        for netdev in lost_device.gone(
            report["plan"].get("expected_link") or [], [one["hca"] for one in report["devices"]]
        )
    ]


def _drift(reports: _REPORTS) -> list[str]:
    notes = []
    for rank in sorted(reports):
        devices = [Device.from_json(one) for one in reports[rank]["devices"]]
        expected = reports[rank]["plan"].get("expected_link") or []
        notes += [f"rank {rank}: {note}" for note in drift(expected, devices)]
    return notes


def _target(rail: Rail, own: Endpoint, peer: Endpoint) -> Target:
    """Where either end has a second port in the subnet, a ping's answer may come through that one."""
    if any(end.shares_subnet for end in rail):
        return Target(own.netdev, peer.address, own.mtu, arp_from=own.address, mac=peer.mac)
    return Target(own.netdev, peer.address, own.mtu)
