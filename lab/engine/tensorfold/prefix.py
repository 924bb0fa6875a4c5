"""Kept prompts: how much of a new prompt was seen before, in whole blocks."""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

BLOCK = 64


class KeptPrompts:
    """The newest `slots` prompts, as chains of block digests."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._kept: OrderedDict[bytes, tuple[list[bytes], int]] = OrderedDict()
        self._lock = Lock()

    def cached(self, ids: Sequence[int]) -> int:
        """Tokens at the front of `ids` that some kept prompt shares; at least one is always computed."""
        chain = _chain(ids)
        with self._lock:
            best = max((_common(chain, kept) for kept, _ in self._kept.values()), default=0)
        return min(best * BLOCK, max(0, len(ids) - 1))

    def keep(self, ids: Sequence[int]) -> None:
        """Remember a prompt, dropping the oldest."""
        chain = _chain(ids)
        if not chain:
            return
        with self._lock:
            self._kept[chain[-1]] = (chain, len(ids))
            self._kept.move_to_end(chain[-1])
            while len(self._kept) > self._slots:
                self._kept.popitem(last=False)

    def count(self) -> int:
        """How many prompts are kept."""
        return len(self._kept)

    def tokens(self) -> int:
        """Tokens of all kept prompts together."""
        with self._lock:
            return sum(length for _, length in self._kept.values())


def _chain(ids: Sequence[int]) -> list[bytes]:
    """One digest a block, each over everything before it."""
    data = array("I", ids).tobytes()
    running = hashlib.sha256()
    chain = []
    for start in range(0, len(ids) // BLOCK * BLOCK * 4, BLOCK * 4):
        running.update(data[start : start + BLOCK * 4])
        chain.append(running.digest()[:16])
    return chain


def _common(one: list[bytes], other: list[bytes]) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:  # chained digests: equal at n means equal before n
        middle = (low + high + 1) // 2
        if one[middle - 1] == other[middle - 1]:
            low = middle
        else:
            high = middle - 1
    return low
