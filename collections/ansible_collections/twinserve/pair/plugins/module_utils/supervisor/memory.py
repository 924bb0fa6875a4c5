"""After a stop: is the memory back? A start that looks too early sees too little, and refuses its window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .state import State

# GiB: other programs come and go, that is no reason to wait.
_TOLERANCE = 4.0
_GROWTH = 1.0
_LIMIT = 60.0


@dataclass(frozen=True)
class Memory:
    """What is being waited for (nothing: a start may go on), and what is to be noted about it."""

    waiting: str = ""
    note: str = ""


def memory_back(state: State, free: Mapping[int, float], now: float) -> Memory:
    """Compare what is available now (GiB by rank) with what was there before.

    Memory is back when there is about as much as before the last start; without such a figure (ranks of an
    earlier supervisor were removed), when it has stopped growing.
    """
    if state.emptied_at is None:
        return Memory()
    late = [rank for rank in sorted(free) if not _is_back(rank, free[rank], state)]
    if not late:
        return Memory()
    rank = late[0]
    wanted = f" of {state.baseline[rank]:.0f}" if rank in state.baseline else ""
    text = f"rank {rank} has {free[rank]:.0f}{wanted} GiB of memory available"
    if overdue(state, now):
        return Memory(note=f"memory did not come back within {_LIMIT:.0f} s: {text}")
    return Memory(waiting=f"waiting for memory to come back: {text}")


def overdue(state: State, now: float) -> bool:
    """Whether the ranks have been gone for so long that their memory is not waited for any more."""
    return state.emptied_at is not None and now - state.emptied_at > _LIMIT


def _is_back(rank: int, free: float, state: State) -> bool:
    if rank in state.baseline:
        return free >= state.baseline[rank] - _TOLERANCE
    return rank in state.available and free - state.available[rank] < _GROWTH
