"""How an engine is asked, where engines differ; what of it a request needs is put in by the client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .promise import Promise


@dataclass(frozen=True)
class Manner:
    """`least` is the smallest reasoning effort there is; None where there is nothing to choose."""

    effort_field: str = "reasoning_effort"
    least: str | None = None
    thought_tokens: int = 0
    likeliest: Mapping[str, Any] = field(default_factory=dict)

    def fields(self, effort: str | None) -> dict[str, Any]:
        """For reasoning of this level; without one, for the least of it, and the likeliest answer."""
        if effort:
            return nested(self.effort_field, effort)
        return {**self.likeliest, **(nested(self.effort_field, self.least) if self.least else {})}

    def budget(self, reply: int) -> int:
        """Tokens for an answer of `reply` tokens, with room for thoughts where the least effort has some."""
        return reply + (self.thought_tokens if self.least not in (None, "none") else 0)


def manner(promise: Promise) -> Manner:
    """The manner of a promise; efforts are listed from the least on."""
    least = promise.reasoning_effort[0] if promise.reasoning_effort else None
    return Manner(promise.effort_field, least, promise.thought_tokens, promise.likeliest)


def nested(path: str, value: Any) -> dict[str, Any]:
    """`value` at a path of names with dots between them."""
    first, _, rest = path.partition(".")
    return {first: nested(rest, value) if rest else value}
