"""`python3 -m twinserve.piped BYTES`: passes on what comes in, and notes how much that is of about BYTES.

It stands in a pipe of two other programs: what breaks is theirs to tell.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from . import progress

_AT_ONCE = 1 << 20
_EVERY = 1.0  # seconds between two notes


def pass_on(source: int, target: int, told: Callable[[int], None]) -> bool:
    """Pass everything on, telling the count after each piece; false when nobody takes it any more."""
    done = 0
    while piece := os.read(source, _AT_ONCE):
        left = memoryview(piece)
        while left:
            try:
                left = left[os.write(target, left) :]
            except BrokenPipeError:
                return False
        done += len(piece)
        told(done)
    return True


class Notes:
    """Notes the numbers once a second, and at the end."""

    def __init__(self, total: int | None) -> None:
        self._total, self._meter = total, progress.Meter()
        self._done, self._next = 0, 0.0

    def add(self, done: int) -> None:
        """So many bytes have passed."""
        self._done = done
        if (now := time.monotonic()) >= self._next:
            self._next = now + _EVERY
            self.write()

    def write(self) -> None:
        """Note the numbers as they are now."""
        self._meter.add(time.monotonic(), self._done)
        # What a store calls an image's size is not to the byte what it gives out.
        total = max(self._total, self._done) if self._total else None
        progress.note(self._meter.numbers(total, time.time()))


def main(argv: list[str]) -> int:
    """Exit code 1 when the other end of the pipe has ended before."""
    notes = Notes(int(argv[1]) or None)
    notes.write()
    whole = pass_on(sys.stdin.fileno(), sys.stdout.fileno(), notes.add)
    notes.write()
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
