"""How long work on weights fails: the text is the last line that people read."""

from __future__ import annotations


class WeightsError(RuntimeError):
    """The work cannot be done; the text says what to do."""


class ClientFailed(WeightsError):
    """The download program ended with an error."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class HubAway(ClientFailed):
    """It ended since the hub did not answer; that may pass."""


class Stalled(WeightsError):
    """No byte came for too long; trying again may help."""
