"""How far long work is: bytes, rate and time left, as a JSON file on the node and as a line for people.

Whatever moves bytes may write it: a copy, a download, the stream of an image.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .agent.plan import write_atomically

FOLDER = Path("/run/twinserve/progress")
_SCHEMA = 1
_WINDOW = 10.0  # seconds over which a rate is taken


@dataclass(frozen=True)
class Progress:
    """`done` and `total` in bytes (0: not known), `rate` in bytes a second, `left` in seconds.

    `how` is said behind the rate (`on 2 rails`); `warnings` are sentences that people must see.
    """

    done: int
    total: int
    rate: float
    left: float | None
    how: str = ""
    warnings: tuple[str, ...] = ()


class Meter:
    """The rate over the last seconds: what a pause or a resumed file did long ago says nothing of now."""

    def __init__(self, window: float = _WINDOW) -> None:
        self._window = window
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, now: float, done: int) -> float:
        """Note `done` bytes at `now` (seconds of any steady clock), and return bytes a second."""
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[1][0] >= self._window:
            self._seen.popleft()
        then, before = self._seen[0]
        # What a broken stream gives back makes it fall for a moment.
        return max(0.0, (done - before) / (now - then)) if now > then else 0.0


def measure(done: int, total: int, rate: float, how: str = "", warnings: Sequence[str] = ()) -> Progress:
    """A report with the time that is left at this rate, where both are known."""
    left = max(0, total - done) / rate if total and rate > 0 else None
    return Progress(done, total, rate, left, how, tuple(warnings))


def write(path: Path, progress: Progress) -> None:
    """Replace the file in one step; anyone may read it."""
    write_atomically(path, {"schema": _SCHEMA, **asdict(progress)})


def read(path: Path) -> dict[str, Any] | None:
    """What was written last; None when there is nothing that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("schema") == _SCHEMA else None


def line(found: Mapping[str, Any]) -> str:
    """`81.3 of 175.6 GB, 2.9 GB/s on 2 rails, 32 s left`, from what `read` returned."""
    parts = [size(found["done"], found["total"])]
    if found["rate"] > 0:
        parts.append(f"{speed(found['rate'])} {found['how']}".rstrip())
    if found["left"] is not None and found["done"] < found["total"]:
        parts.append(f"{duration(found['left'])} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """`32 s`, `4 min`, `2 h 5 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def size(done: int, total: int = 0) -> str:
    """`81.3 of 175.6 GB`, or `81.3 GB`."""
    unit, divisor, digits = ("GB", 1e9, 1) if max(done, total) >= 1e9 else ("MB", 1e6, 0)
    whole = f" of {total / divisor:.{digits}f}" if total else ""
    return f"{done / divisor:.{digits}f}{whole} {unit}"


def speed(rate: float) -> str:
    """`2.9 GB/s`, or `46 MB/s`."""
    return f"{rate / 1e9:.1f} GB/s" if rate >= 1e9 else f"{rate / 1e6:.0f} MB/s"
