"""When to write down again what changes all the time."""

from __future__ import annotations

from .state import State
from .words import shown

_EVERY = 5.0


class Beat:
    """Every few seconds, and at once when the pair does something else."""

    def __init__(self) -> None:
        self._at, self._word = float("-inf"), ""

    def due(self, state: State, now: float) -> bool:
        """Whether it is time; then it is not again for a while."""
        word = shown(state, now) + state.phase
        if now - self._at < _EVERY and word == self._word:
            return False
        self._at, self._word = now, word
        return True
