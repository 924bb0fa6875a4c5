"""For people: what the pair is doing, in one line, and what they should know beside."""

from __future__ import annotations

from .draining import requests, running
from .serving import unseen, waiting
from .state import Phase, RankView, State, title

# A start that has been kept waiting so long shows as down; it goes on by itself when the cause is gone.
BLOCKED_GRACE = 60.0


def shown(state: State, now: float) -> str:
    """Return the state's name in the state file."""
    if state.phase is Phase.LOOK and state.blocked and now - state.blocked_at > BLOCKED_GRACE:
        return "down"
    return state.shown


def status(state: State, now: float) -> str:
    """Return the line that `systemctl status` shows."""
    return f"{shown(state, now)}: {detail(state, now)}"


def detail(state: State, now: float) -> str:
    """Return the state in one line, without its name."""
    match state.phase:
        case Phase.LOOK:
            return (
                f"waiting: {state.blocked}"
                if state.blocked
                else state.waiting or "asking all nodes what they have"
            )
        case Phase.REACH:
            return f"proving {_rails(state)} with full-size packets"
        case Phase.LAUNCH:
            left = [rank for rank in state.config.start_order if rank not in state.answers]
            return f"starting rank {left[0]}" if left else "all ranks are started"
        case Phase.LOAD:
            return _loading(state, now)
        case Phase.SMOKE:
            return "asking for a first reply"
        case Phase.SERVE:
            return _serving(state, now)
        case Phase.COLLECT:
            return f"{state.failure}; fetching the logs"
        case Phase.HALT:
            return _halting(state, now)
        case Phase.EMPTY:
            return state.waiting or "all ranks are stopped, looking at the memory"
        case Phase.DOWN:
            return state.reason
    return "; ".join(["stopped", state.reason] if state.reason else ["stopped"])


def warnings(state: State) -> list[str]:
    """What does not keep the pair from serving, and that people should know of."""
    return [
        *state.link.warnings,
        *filter(None, [state.returned]),
        *state.notes,
        *state.attempt.notes,
        *(f"{title(state, view.rank)}: {text}" for view in state.ranks for text in view.warnings),
        *(
            f"{title(state, view.rank)}: {says}: {line}"
            for view in state.ranks
            for says, line in view.remarks.items()
        ),
    ]


def _halting(state: State, now: float) -> str:
    count = running(state)
    if state.drain_until is None or not count:
        return f"stopping all ranks ({state.reason})"
    left = max(0.0, state.drain_until - now)
    return f"waiting for {requests(count)} to end before the stop, at most {left:.0f} s"


def _loading(state: State, now: float) -> str:
    parts = [f"rank {view.rank} {_memory(view)}" for view in state.ranks]
    # In steps: a text that changes every second is a line every second for who follows it.
    elapsed = int(now - state.phase_at) // 5 * 5
    quiet = int(now - state.progress_at) // 10 * 10
    still = f", no progress for {quiet} s" if quiet > 60 else ""
    steps = [state.ranks[0].step] if state.ranks[0].step else []
    return ", ".join([*parts, f"{elapsed} s", *steps]) + still


def _memory(view: RankView) -> str:
    """Return e.g. `41.2 of 88.09 GiB`: in use, and what the engine said that it would need."""
    estimate = f" of {view.estimate_gib}" if view.estimate_gib else ""
    if view.gpu_gib is None and view.memory_gib is not None:
        return f"{view.memory_gib:.1f}{estimate} GiB in its container"
    return f"{'?' if view.gpu_gib is None else f'{view.gpu_gib:.1f}'}{estimate} GiB"


def _serving(state: State, now: float) -> str:
    window = state.api.health.get("context_length")
    parts = [f"window {window}"] if window else []
    parts.append(_rails(state))
    if not state.proved:
        return ", ".join(["found running, waiting for a reply", *parts])
    canary = state.canary
    if lost := unseen(state, now):
        parts.insert(0, f"degraded: {_who(state, lost[0])} unreachable for {lost[1]:.0f} s")
    if waiting(state) and canary.sent is not None and now - canary.sent > 10:
        parts.append(f"canary unanswered for {now - canary.sent:.0f} s")
    elif canary.detail:
        parts.append(f"canary: {canary.detail}")
    elif canary.ok:
        parts.append(f"canary {canary.seconds:.1f} s")
    return ", ".join(parts)


def _who(state: State, rank: int) -> str:
    return f"{'head' if rank == 0 else 'worker'} {state.ranks[rank].name}"


def _rails(state: State) -> str:
    count = len(state.link.rails)
    return f"{count} rail{'' if count == 1 else 's'}"
