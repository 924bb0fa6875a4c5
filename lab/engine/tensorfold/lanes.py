"""How many requests decode together; the others wait in line."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Lane:
    """One request's place: prefilling until `decode` is called."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self.prefilling = True

    def decode(self) -> None:
        """The prefill is over."""
        if self.prefilling:
            self.prefilling = False
            self._lanes.change(prefilling=-1)


class Lanes:
    """`width` lanes and the counts that /health shows."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.waiting = 0
        self.running = 0
        self.prefilling = 0
        self._admitted = 0
        self._free = threading.Semaphore(width)
        self._lock = threading.Lock()

    @contextmanager
    def admit(self, waiting: int) -> Iterator[bool]:
        """Hold a place in a lane or in a line of so many; False when there is none."""
        with self._lock:
            placed = self._admitted < self.width + waiting
            self._admitted += placed
        try:
            yield placed
        finally:
            with self._lock:
                self._admitted -= placed

    @contextmanager
    def enter(self, wait: bool = True) -> Iterator[Lane]:
        """Wait for a lane and hold it; or take one more than there are."""
        self.change(waiting=1)
        try:
            held = self._free.acquire(blocking=wait)
        finally:
            self.change(waiting=-1)
        lane = Lane(self)
        self.change(running=1, prefilling=1)
        try:
            yield lane
        finally:
            lane.decode()
            self.change(running=-1)
            if held:
                self._free.release()

    def change(self, waiting: int = 0, running: int = 0, prefilling: int = 0) -> None:
        """Add to the counts, all at once."""
        with self._lock:
            self.waiting += waiting
            self.running += running
            self.prefilling += prefilling
