"""How a check ends when it does not pass."""

from __future__ import annotations


class Wrong(RuntimeError):
    """The API does not keep a promise; the text says what was asked and what came back."""


class Unanswered(Wrong):
    """No answer came."""


class NotPromised(Exception):
    """This pair does not promise what the check is about; the text says why."""
