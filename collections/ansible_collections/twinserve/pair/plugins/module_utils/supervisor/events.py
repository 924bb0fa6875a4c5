"""What the supervisor does (actions) and what it learns (a `Done` each). All times are monotonic seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..reach import Target


@dataclass(frozen=True)
class Action:
    """Something to be done outside the step. An answer to an earlier epoch is old news and is dropped."""

    epoch: int


@dataclass(frozen=True)
class RankAction(Action):
    """Something asked of one rank's agent."""

    rank: int


@dataclass(frozen=True)
class Report(RankAction):
    """Ask a node what it has: devices, plan, container."""


@dataclass(frozen=True)
class Probe(RankAction):
    """Ask a rank how it is; while it is `loading`, its node also looks after the memory."""

    loading: bool = False


@dataclass(frozen=True)
class Reach(RankAction):
    """Send full-size packets from this rank."""

    targets: tuple[Target, ...]


@dataclass(frozen=True)
class Start(RankAction):
    """Start a rank; `link` is the JSON that its agent reads."""

    link: str


@dataclass(frozen=True)
class Stop(RankAction):
    """Stop a rank; `kill` a rank of a start that failed, which has nothing to finish."""

    kill: bool = False


@dataclass(frozen=True)
class Logs(RankAction):
    """Fetch the last lines that a rank printed."""

    lines: int


@dataclass(frozen=True)
class Look(Action):
    """Ask the API for its models and its counters."""


@dataclass(frozen=True)
class Ask(Action):
    """Send the tiny completion that proves life, and wait for it at most `timeout` seconds."""

    model: str
    timeout: float


@dataclass(frozen=True)
class Say(Action):
    """Write to the journal."""

    text: str


@dataclass(frozen=True)
class Exit(Action):
    """End the supervisor: all is stopped."""


@dataclass(frozen=True)
class Done:
    """The answer to an action: a value, or the error in words for people. `seconds` is what it took."""

    action: Action
    value: Any = None
    error: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Observation:
    """What came in since the last step. `clock` is the wall time as people read it."""

    clock: str
    done: tuple[Done, ...] = ()
    terminate: bool = False
