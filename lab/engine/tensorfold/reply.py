"""What a request asks for and what is answered, independent of the route it came by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """One tool call: the arguments are a JSON object."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """The whole answer before it is cut to the budget."""

    reasoning: str = ""
    content: str = ""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True)
class Job:
    """One generation: prompt ids, planned reply, budget in tokens (reasoning included), stop texts."""

    prompt: list[int]
    reply: Reply
    budget: int
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Delta:
    """A piece of the answer: kind is reasoning, content or call."""

    kind: str
    text: str = ""
    call: Call | None = None


@dataclass
class Stats:
    """Figures of one finished generation: seconds and tokens."""

    prompt_tokens: int = 0
    cached: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    first_token_s: float = 0.0
    reasoning_tokens: int = 0
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    finish: str = "stop"
    ids: list[int] = field(default_factory=list)

    @property
    def completion_tokens(self) -> int:
        """Tokens generated, reasoning and calls included."""
        return len(self.ids)
