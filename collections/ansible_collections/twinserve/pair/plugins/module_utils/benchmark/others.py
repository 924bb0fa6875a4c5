"""Whether others' requests run on a pair, by its own counters; the supervisor's canary is none of theirs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..acceptance.client import Api
from ..supervisor.client import added

SPAN = 6.0  # seconds
_LOOKS = 12  # in a span, beside the first


class Unquiet(RuntimeError):
    """It must not be measured now; the text says why, and the way out."""


@dataclass(frozen=True)
class Seen:
    """The pair's counters: requests that run or wait now, and those since its start. None: not told."""

    running: float | None
    total: float | None


def look(api: Api, metrics: Mapping[str, Sequence[str]]) -> Seen:
    """Ask for them as the supervisor does. Raises acceptance's Wrong when nothing answers."""
    told: dict[str, float] = {}
    answer = api.ask("/health")
    try:
        health = json.loads(answer.body) if answer.status == 200 else {}
    except ValueError:
        health = {}
    if isinstance(health, dict):
        told |= {name: health[name] for name in ("requests_running", "requests_total") if name in health}
    if metrics:
        sums = added(api.ask("/metrics").text)
        for name, parts in metrics.items():
            if found := [sums[part] for part in parts if part in sums]:
                told[name] = sum(found)
    return Seen(told.get("requests_running"), told.get("requests_total"))


def canaries(seconds: float, interval: float) -> int:
    """How many of the supervisor's own requests may come to their end in that time."""
    return int(seconds / interval) + 1


def need_quiet(ask: Callable[[], Seen], interval: float, span: float = SPAN) -> None:
    """Watch for a few seconds. Raises Unquiet when requests of others run, or when that cannot be known.

    What runs at the end of them gets as long again to end: the supervisor's own request does.
    """
    began, seen = time.monotonic(), [ask()]
    while len(seen) <= _LOOKS or (seen[-1].running and len(seen) <= 2 * _LOOKS):
        time.sleep(span / _LOOKS)
        seen.append(ask())
    way = "-e bench_while_busy=true measures all the same, and the report says so"
    if any(one.running is None or one.total is None for one in seen):
        raise Unquiet(f"the pair does not tell whether requests of others run: {way}")
    if still := seen[-1].running:
        raise Unquiet(f"{still:.0f} requests of others run: wait until they have ended; {way}")
    ended, seconds = (seen[-1].total or 0) - (seen[0].total or 0), time.monotonic() - began
    if ended > canaries(seconds, interval):
        told = f"{ended:.0f} requests of others within {seconds:.0f} s"
        raise Unquiet(f"{told}: wait for a quieter hour; {way}")


def strangers(before: Seen, after: Seen, ours: int, seconds: float, interval: float) -> int | None:
    """How many requests of others ran meanwhile, beyond what canaries can be.

    None where it is not told, or the engine began to count anew.
    """
    if before.total is None or after.total is None or after.total < before.total:
        return None
    return max(0, int(after.total - before.total) - ours - canaries(seconds, interval))
