"""How far long work is: the rate of the last minute, the time to go, one line for people.

The same five numbers are shown on the terminal and kept as JSON on the node: `bytes`, `total`, `rate` (bytes
a second), `eta` (seconds), `updated` (seconds since the epoch). What is not known is None. Work may add `how`
(words behind the rate) and `warnings` (sentences that people must see).
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path("/run/twinserve/progress")
VARIABLE = "TWINSERVE_PROGRESS"  # tells a job's program where to note its numbers
_SPAN = 60.0  # seconds: a shorter window jumps with every file that begins, a longer one tells of the past


class Meter:
    """A sliding window over what was done until when, on a clock that does not jump."""

    def __init__(self, span: float = _SPAN) -> None:
        self._span = span
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, now: float, done: int) -> None:
        """Note that `done` bytes are there at `now`; fewer than before means that the work began anew."""
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()
        self._seen.append((now, done))
        # One sample from before the window stays: a rate is over the whole of it.
        while len(self._seen) > 2 and self._seen[1][0] <= now - self._span:
            self._seen.popleft()

    @property
    def rate(self) -> float | None:
        """Bytes a second within the window; None until there are two moments to compare."""
        if len(self._seen) < 2 or (seconds := self._seen[-1][0] - self._seen[0][0]) <= 0:
            return None
        return (self._seen[-1][1] - self._seen[0][1]) / seconds

    def numbers(self, total: int | None, updated: float) -> dict[str, Any]:
        """The five numbers now; `updated` is the time of day, which the meter does not know."""
        done, rate = self._seen[-1][1] if self._seen else 0, self.rate
        return {
            "bytes": done,
            "total": total,
            "rate": rate,
            "eta": eta(done, total, rate),
            "updated": updated,
        }


def eta(done: int, total: int | None, rate: float | None) -> float | None:
    """Seconds to go at this rate; None where the end or the rate is not known, or nothing moves."""
    if total is None:
        return None
    left = max(0, total - done)
    if not left:
        return 0.0
    return left / rate if rate else None


def note(numbers: Mapping[str, Any], path: str | None = None) -> None:
    """Keep the numbers as JSON, in one step; nowhere, when the program is not run as a job."""
    target = path or os.environ.get(VARIABLE)
    if not target:
        return
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(f"{target}.new")
    fresh.write_text(json.dumps(numbers) + "\n")
    fresh.replace(target)


def read(path: Path) -> dict[str, Any] | None:
    """The numbers that were noted last; None when there are none."""
    return dict(json.loads(path.read_text())) if path.is_file() else None


def line(numbers: Mapping[str, Any]) -> str:
    """`12.3 of 176.0 GB (7%), 310 MB/s, 9 min left`, without what is not known.

    Behind the rate stands `how`, if the work says it: `on 2 rails`.
    """
    done, total = int(numbers["bytes"]), numbers.get("total")
    words = [f"{done / 1e9:.1f} GB"]
    if total:
        # Never 100% before the end: what is on disk is counted in blocks.
        words = [f"{done / 1e9:.1f} of {total / 1e9:.1f} GB ({min(99, done * 100 // total)}%)"]
    if (rate := numbers.get("rate")) is not None:
        words.append(f"{_rate(rate)} {numbers.get('how', '')}".rstrip())
    if left := numbers.get("eta"):
        words.append(f"{duration(left)} left")
    return ", ".join(words)


def _rate(rate: float) -> str:
    return f"{rate / 1e9:.1f} GB/s" if rate >= 1e9 else f"{rate / 1e6:.{0 if rate >= 1e7 else 1}f} MB/s"


def duration(seconds: float) -> str:
    """`40 s`, `9 min`, `2 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
