"""Why did a start fail, and what is worth trying? Pure, from the ranks' last lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from .config import Config, Failure
from .proofs import clip
from .state import Attempt

_USAGE = 2
# Docker's and the kernel's own words, whatever the engine.
_NO_DISK = Failure(
    re.compile("no space left on device", re.IGNORECASE),
    "make room on that node, then systemctl restart twinserve on the head",
    refusal=True,
)


class Next(StrEnum):
    """What to do: the same start again in another way (not counted), a restart (counted), or nothing."""

    AGAIN = "again"
    RESTART = "restart"
    REFUSED = "refused"


@dataclass(frozen=True)
class Verdict:
    """What to do, why (one line for people), and how the next start differs from the plan."""

    next: Next
    reason: str
    attempt: Attempt


def judge(
    reason: str, lines: list[str], codes: Iterable[int | None], config: Config, attempt: Attempt
) -> Verdict:
    """Judge a start that failed before the server was ready, by the ranks' lines (see `lines_of`)."""
    if config.refit and (found := _first(config.refit, lines)):
        return _refit(reason, found, config, attempt)
    # Before the retries: their line may be the mere consequence of one that no other start avoids.
    for failure in (*config.failures, _NO_DISK):
        if failure.refusal and (found := _first(failure.pattern, [*lines, reason])):
            return Verdict(Next.REFUSED, _cured(reason, found, failure), Attempt())
    for pattern in config.retry:
        if found := _first(pattern, lines):
            return _retry(explain(reason, lines, config), found.group(0), config, attempt)
    following = Next.REFUSED if _USAGE in codes else Next.RESTART
    return Verdict(following, explain(reason, lines, config), Attempt())


def alarm(logs: Mapping[int, str], config: Config) -> str | None:
    """Say what is wrong with ranks that run: a line which must not be there, who printed it, its cure."""
    for rule in config.alarms:
        found = {rank: _first(rule.pattern, logs[rank].splitlines()) for rank in sorted(logs)}
        lines = {rank: hit.string.strip() for rank, hit in found.items() if hit}
        if lines:
            said = "; ".join(rule.says.replace("{rank}", str(rank)) for rank in lines)
            return f"{said}: {clip(next(iter(lines.values())))}; {rule.cure}"
    return None


def lines_of(logs: Mapping[int, str], culprit: int | None) -> list[str]:
    """Return all ranks' lines, those of the rank that ended first last: its last line is the one to show."""
    order = sorted(logs, key=lambda rank: (rank == culprit, rank))
    return [line.strip() for rank in order for line in logs[rank].splitlines() if line.strip()]


def explain(reason: str, lines: list[str], config: Config) -> str:
    """Add to the reason the line that tells most, and its known cure."""
    for failure in config.failures:
        found = _first(failure.pattern, lines)
        if found:
            return _cured(reason, found, failure)
    return f"{reason}: {clip(lines[-1])}" if lines else reason


def _cured(reason: str, found: re.Match[str], failure: Failure) -> str:
    said = "" if found.string == reason else f": {clip(found.string)}"
    return f"{reason}{said}; {failure.cure}"


def _refit(reason: str, found: re.Match[str], config: Config, attempt: Attempt) -> Verdict:
    window = int(found.group("window"))
    refusal = explain(reason, [found.string], config)
    if window <= 0:
        return Verdict(Next.REFUSED, f"no window fits into the memory of this start: {refusal}", Attempt())
    if attempt.window is not None:
        return Verdict(Next.REFUSED, f"the window that was refitted to {attempt.window} tokens does not fit "
                       f"either: {refusal}", Attempt())  # fmt: skip
    asked = found.groupdict().get("requested")
    note = f"this start holds a {window}-token window" + (f", not {asked}" if asked else "")
    return Verdict(Next.AGAIN, note, replace(attempt, window=window, notes=(*attempt.notes, note)))


def _retry(reason: str, text: str, config: Config, attempt: Attempt) -> Verdict:
    """Once more unchanged, then once with the variables that avoid it, then it is a failure like others."""
    if attempt.retries == 0:
        note = f"started again after: {text}"
        return Verdict(Next.AGAIN, note, replace(attempt, retries=1, notes=(*attempt.notes, note)))
    if attempt.retries == 1 and config.retry_env:
        note = (
            f"started with {', '.join(f'{name}={value}' for name, value in config.retry_env)} after: {text}"
        )
        changed = replace(attempt, retries=2, env=config.retry_env, notes=(*attempt.notes, note))
        return Verdict(Next.AGAIN, note, changed)
    return Verdict(Next.RESTART, reason, Attempt())


def _first(pattern: re.Pattern[str], lines: Iterable[str]) -> re.Match[str] | None:
    return next((found for line in lines if (found := pattern.search(line))), None)
