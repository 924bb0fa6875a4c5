"""Change the ports of this node under a way back: armed before, undone at once when a check fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from . import fabric_record, port_state, restore, way_back
from .confirming import LIMIT, UNDO, ApplyError
from .netdevs import read_links
from .shell import CommandError

NAME = "fabric"
# Seconds for all commands of a change, so that none runs on, or begins, when the timer has undone it.
APPLY = 20
# Seconds for the addresses by which somebody reaches this node to come back, and that they must then stay.
_OTHERS, _STAY = 5, 1


@dataclass(frozen=True)
class Change:
    """A change of the ports `netdevs` from the state `before` to `after` (its file and profiles)."""

    netdevs: Collection[str]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    apply: Callable[[], None]
    check: Callable[[], None]
    undone: str
    about: dict[str, Any]


def guarded(change: Change) -> None:
    """Arm, apply, check; within `confirming.alone`, the looking too, so that `before` is what is there.

    Leaves the way back armed; raises ApplyError when all is as before again.
    """
    others = port_state.others(change.netdevs)
    saved = fabric_record.keep(change.before["netplan"], way_back.make_room(NAME) / "netplan-before")
    undo = restore.commands(change.before, change.after, saved, thorough=True)
    undo += restore.reachable(others, port_state.routes(change.netdevs))
    way_back.arm(NAME, LIMIT, undo, change.about)
    try:
        change.apply()
        _refuse_lost(others)
        change.check()
        time.sleep(_STAY)
        _refuse_lost(others)
    except (CommandError, ApplyError) as error:
        raise ApplyError(f"{error}; {_undo(others, change.undone)}") from error


def budget() -> Callable[[], float]:
    """Seconds that are left, whenever asked, for the commands of a change that begins now."""
    ends = time.monotonic() + APPLY
    return lambda: max(0.1, ends - time.monotonic())


def wait(condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
    """Poll until it holds. Raises ApplyError with the text `otherwise` when it does not in time."""
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            raise ApplyError(otherwise)
        time.sleep(0.1)


def _refuse_lost(others: Collection[Mapping[str, Any]]) -> None:
    """What must survive are the addresses of all other ports, by one of which somebody reaches this node."""
    for one in others:
        address = one["address"].split("/")[0]
        text = f"management address {address} did not return within {_OTHERS} s"
        wait(lambda address=address: _has(address), _OTHERS, text)  # type: ignore[misc]


def _has(address: str) -> bool:
    return any(one.split("/")[0] == address for link in read_links().values() for one in link["addresses"])


def _undo(others: Collection[Mapping[str, Any]], undone: str) -> str:
    """Undo now; what is told of it is true also when it did not bring everything back."""
    try:
        way_back.undo_now(NAME)
    except CommandError as error:
        return f"the way back could not be taken ({error}): look at the node's console"
    limit = time.monotonic() + UNDO
    missing = [one for one in others if not _has(one["address"].split("/")[0])]
    while missing and time.monotonic() < limit:
        time.sleep(0.2)
        missing = [one for one in others if not _has(one["address"].split("/")[0])]
    if missing:
        lost = ", ".join(f"{one['address']} on {one['netdev']}" for one in missing)
        return f"{undone}, but this did not bring back {lost}"
    return undone
