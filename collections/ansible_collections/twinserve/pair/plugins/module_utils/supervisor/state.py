"""The supervisor's state: plain, frozen, and complete, so that a step needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from ..link import Link
from .config import Config
from .events import Action, Start


class Phase(StrEnum):
    """Where the pair is on its way. People see fewer words: `State.shown`."""

    LOOK = "look"
    REACH = "reach"
    LAUNCH = "launch"
    LOAD = "load"
    SMOKE = "smoke"
    SERVE = "serve"
    COLLECT = "collect"
    HALT = "halt"
    EMPTY = "empty"
    DOWN = "down"
    GONE = "gone"


_MISSES = 3
_SHOWN = {
    Phase.LOAD: "loading",
    Phase.SMOKE: "smoke",
    Phase.EMPTY: "stopping",
    Phase.DOWN: "down",
    Phase.GONE: "down",
}


@dataclass(frozen=True)
class RankView:
    """What is known of a rank. `launched` is the container that this pair consists of.

    `memory_gib` is the container's, where the GPU's is not known. `estimate_gib` and `step` are what the
    engine said last.
    """

    rank: int
    name: str
    unit: str = "unknown"
    container: str | None = None
    running: bool = False
    exit_code: int | None = None
    gpu_gib: float | None = None
    memory_gib: float | None = None
    estimate_gib: str | None = None
    step: str = ""
    log_line: str | None = None
    launched: str | None = None
    # When the last look that was answered ended, and when it began.
    seen_at: float | None = None
    asked_at: float | None = None
    # Ports of its rails without a live other end.
    dark: tuple[str, ...] = ()
    # The kernel's line about a driver that got no memory for this start, and what else its node has to say.
    starved: str | None = None
    warnings: tuple[str, ...] = ()
    # Proofs (patterns) that it gave at this start, and lines that are worth telling, by what is said of them.
    proofs: frozenset[str] = frozenset()
    remarks: Mapping[str, str] = field(default_factory=dict)
    # Looks in a row that found the unit active without its container, and looks that failed.
    strays: int = 0
    misses: int = 0
    missed: str = ""


@dataclass(frozen=True)
class ApiView:
    """The last look at the API. `model` is None while it does not answer, `problem` says why.

    `others`: requests that ran then, without our canary. `misses`: looks in a row without an answer.
    """

    model: str | None = None
    problem: str = ""
    health: Mapping[str, Any] = field(default_factory=dict)
    others: int = 0
    misses: int = 0


@dataclass(frozen=True)
class Canary:
    """The proof of life. `ended` and `sent` are monotonic, `at` is for people.

    `bad` counts failures in a row; a `hopeless` one would come again after any start. `quiet`: nothing else
    ran when it was sent, after `total` requests. `uncounted`: ours since the counters were looked at.
    """

    sent: float | None = None
    quiet: bool = False
    total: float = 0.0
    uncounted: int = 0
    ended: float | None = None
    at: str = ""
    seconds: float = 0.0
    ok: bool = False
    bad: int = 0
    hopeless: bool = False
    detail: str = ""


@dataclass(frozen=True)
class Attempt:
    """How this start differs from the plan: a smaller window, tries of the known first failure."""

    window: int | None = None
    retries: int = 0
    env: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """Everything. Times are monotonic seconds; `since` and `clock` are wall time for people."""

    config: Config
    ranks: tuple[RankView, ...]
    phase: Phase = Phase.LOOK
    phase_at: float = 0.0
    since: str = ""
    clock: str = ""
    epoch: int = 0
    # Questions that are under way, and when each kind was asked last.
    pending: frozenset[Action] = frozenset()
    asked: Mapping[str, float] = field(default_factory=dict)
    # Replies of the ranks to what this phase asked of each.
    answers: Mapping[int, Any] = field(default_factory=dict)
    problems: Mapping[int, str] = field(default_factory=dict)
    # Why a start cannot go on yet, and since when.
    waiting: str = ""
    blocked: str | None = None
    blocked_at: float = 0.0
    # How many rails the configuration expects, and since when there are fewer.
    expected_rails: int = 0
    short_at: float | None = None
    # GiB available at the last start and at the last look, and since when the ranks are gone.
    baseline: Mapping[int, float] = field(default_factory=dict)
    available: Mapping[int, float] = field(default_factory=dict)
    emptied_at: float | None = None
    digest: str = ""
    known_digests: frozenset[str] = frozenset()
    link: Link = Link()
    # Rails beside it that are being proved while it serves, and what is to be said of them.
    extra: Link = Link()
    returned: str = ""
    notes: tuple[str, ...] = ()
    attempt: Attempt = Attempt()
    api: ApiView = ApiView()
    canary: Canary = Canary()
    # Since when a rail in use has been without carrier.
    dark_at: float | None = None
    # The last sign of progress while loading, and of life while serving.
    progress_at: float = 0.0
    vital_at: float = 0.0
    # A pair that was found running: whether it is still to be looked at, and whether it has proved itself.
    adopted: bool = False
    proved: bool = False
    # Whether these ranks were started by an earlier supervisor.
    found: bool = False
    # What went wrong, whether it was before the server was ready, and what comes after the ranks are stopped.
    failure: str = ""
    early: bool = False
    culprit: int | None = None
    # Ranks that this start did not come to: what they printed, and their exit codes, are of an earlier one.
    unstarted: frozenset[int] = frozenset()
    after: Phase = Phase.LOOK
    reason: str = ""
    # Whether the ranks are to be stopped without their time to finish.
    kill: bool = False
    left_running: bool = False
    # Until when running requests are waited for before a stop, and how many were cut off in the end.
    drain_until: float | None = None
    cut: int = 0
    last_error: str | None = None
    restarts: tuple[float, ...] = ()
    restarts_at: tuple[str, ...] = ()
    quitting: bool = False

    @property
    def deaf(self) -> bool:
        """Whether the API has stopped answering: one look that is missed under load says nothing yet."""
        return self.api.misses >= _MISSES

    @property
    def starting(self) -> frozenset[int]:
        """Ranks whose start is under way: stopping them now could be overtaken by it."""
        return frozenset(action.rank for action in self.pending if isinstance(action, Start))

    @property
    def shown(self) -> str:
        """The state in the words of the state file."""
        if self.phase is Phase.SERVE:
            return "serving" if self.proved else "starting"
        if self.phase is Phase.HALT:
            return "starting" if self.after is Phase.LOOK else "stopping"
        return _SHOWN.get(self.phase, "starting")


Moved = tuple[State, tuple[Action, ...]]


def fresh(config: Config, now: float, clock: str) -> State:
    """Return the state of a supervisor that has seen nothing yet."""
    ranks = tuple(RankView(member.rank, member.name) for member in config.members)
    known = frozenset({config.digest})
    return State(
        config, ranks, phase_at=now, since=clock, clock=clock, digest=config.digest, known_digests=known
    )


def enter(state: State, phase: Phase, now: float, **changes: Any) -> State:
    """Go to another phase. What was asked before is forgotten, except starts, which must be waited for."""
    starts = frozenset(action for action in state.pending if isinstance(action, Start))
    return replace(
        state,
        phase=phase,
        phase_at=now,
        epoch=state.epoch + 1,
        pending=starts,
        asked={},
        answers={},
        problems={},
        extra=Link(),
        returned="",
        **changes,
    )


def with_rank(state: State, view: RankView) -> State:
    """Replace what is known of one rank."""
    return replace(state, ranks=tuple(view if old.rank == view.rank else old for old in state.ranks))


def ask(state: State, action: Action, now: float, every: float = 0.0) -> Moved:
    """Ask something unless it is being asked, or was less than `every` seconds ago."""
    if action in state.pending:
        return state, ()
    kind = f"{type(action).__name__} {getattr(action, 'rank', '')}"
    last = state.asked.get(kind)
    if last is not None and now - last < every:
        return state, ()
    asked = {**state.asked, kind: now}
    return replace(state, pending=state.pending | {action}, asked=asked), (action,)


def recent_restarts(state: State, now: float) -> list[tuple[float, str]]:
    """Return those that still count against the limit, each by the clock of `now` and by that for people."""
    both = zip(state.restarts, state.restarts_at, strict=True)
    return [one for one in both if now - one[0] < state.config.restart_window]


def title(state: State, rank: int) -> str:
    """Return what people call a rank: `rank 1 (spark-b)`."""
    return f"rank {rank} ({state.ranks[rank].name})"
