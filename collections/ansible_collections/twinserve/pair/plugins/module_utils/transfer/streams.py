"""The streams of a copy: threads that take batches from one queue, each over its rail, until all arrived."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from .dealing import Batch, File, Queue
from .plan import Way
from .said import Fault

TRIES = 3
_PAUSE = 2.0  # seconds between the tries of a stream
Counted = Callable[[int], None]


class Carrier(Protocol):
    """What streams need of the world."""

    def send(self, way: Way, batch: Batch, counted: Counted) -> Fault | None:
        """Send a batch; `counted` hears its bytes so far. Returns what went wrong."""

    def answers(self, way: Way) -> Fault | None:
        """Whether the worker answers there; returns what is wrong."""

    def halt(self) -> None:
        """End all sending at once."""


class CopyError(RuntimeError):
    """The copy cannot go on."""


@dataclass
class _Rail:
    """A rail with its streams that still run, those of them that fail, and the bytes that it brought over."""

    way: Way
    streams: int
    failing: int = 0
    moved: int = 0
    fault: str = ""

    @property
    def carries(self) -> bool:
        """Whether a stream of it works; one that fails may yet come back."""
        return self.streams > self.failing


@dataclass
class Count:
    """Where all streams together are: bytes that are still to come, and rails in use."""

    left: int
    rails: int
    warnings: list[str] = field(default_factory=list)


class Streams:
    """`each` streams for every rail. One that fails gives its batch back and tries again, `TRIES` times."""

    def __init__(self, queue: Queue, ways: Sequence[Way], each: int, carrier: Carrier) -> None:
        self._queue, self._carrier = queue, carrier
        self._rails = [_Rail(way, each) for way in ways]
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._moving: dict[Batch, int] = {}
        self._warnings: list[str] = []
        self._error = ""
        self.hopeless = ""  # why no rail at all could do it
        self._threads = [
            threading.Thread(target=self._work, args=(rail,), daemon=True)
            for _ in range(each)
            for rail in self._rails
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def complete(self, lacking: Container[str], more: Iterable[File]) -> None:
        """Tell what is missing: of what waits only that, and `more`."""
        with self._changed:
            self._queue.complete(lacking, more)
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Whether all has arrived, after `seconds` at the latest. Raises CopyError when it never will.

        A stream may still be busy with finding out that its rail is dead; nobody waits for that.
        """
        with self._changed:
            ended = self._changed.wait_for(self._over, seconds)
        if self._error:
            raise CopyError(self._error)
        return ended

    def count(self) -> Count:
        """Where they are now."""
        with self._changed:
            left = self._queue.left - sum(self._moving.values())
            # The work may be over before a rail that fails was given up.
            broken = [rail for rail in self._rails if rail.streams and not rail.carries and self._queue.over]
            warnings = [
                *self._warnings,
                *(f"rail to {one.way.address} failed ({one.fault})" for one in broken),
            ]
            return Count(left, sum(rail.carries for rail in self._rails), warnings)

    def moved(self) -> dict[str, int]:
        """Bytes that each rail brought over, by address."""
        return {rail.way.address: rail.moved for rail in self._rails}

    def alive(self) -> list[Way]:
        """Rails that were not lost."""
        return [rail.way for rail in self._rails if rail.streams > 0]

    def _over(self) -> bool:
        return bool(self._error) or self._queue.over

    def _work(self, rail: _Rail) -> None:
        """Nobody waits for a thread that is gone: what ends it ends the copy."""
        try:
            self._stream(rail)
        except OSError as error:
            with self._changed:
                self._error = self._error or f"{error}; run it again to go on"
                self._stopped.set()
                self._carrier.halt()
                self._changed.notify_all()

    def _stream(self, rail: _Rail) -> None:
        failed = 0
        while failed < TRIES and not self._over():
            # After a failure it asks before it takes a batch, which others could be sending meanwhile.
            fault = self._carrier.answers(rail.way) if failed else None
            if not fault:
                if not (batch := self._next()):
                    return
                fault = self._carrier.send(rail.way, batch, partial(self._credit, batch))
                self._settle(rail, batch, fault)
            self._judge(rail, fault, bool(failed))
            failed = failed + 1 if fault else 0
            if fault:
                self._stopped.wait(_PAUSE)
        if failed >= TRIES:
            self._lost(rail)

    def _next(self) -> Batch | None:
        """A batch, as soon as there is one; None when nothing will come any more."""
        with self._changed:
            while not self._over():
                if batch := self._queue.take():
                    self._moving[batch] = 0
                    return batch
                self._changed.wait()
            return None

    def _credit(self, batch: Batch, done: int) -> None:
        with self._changed:
            if batch in self._moving:
                self._moving[batch] = min(done, batch.size)

    def _settle(self, rail: _Rail, batch: Batch, fault: Fault | None) -> None:
        with self._changed:
            # Not the batch's size: rsync leaves out what is there already.
            moved = self._moving.pop(batch, 0)
            if not fault:
                self._queue.finish(batch)
                rail.moved += moved
                if self._queue.over:
                    self._stopped.set()
            else:
                self._queue.give_back(batch)
                if fault.hopeless:
                    self._error = self.hopeless = self._error or fault.text
                    self._stopped.set()
                    self._carrier.halt()
            self._changed.notify_all()

    def _judge(self, rail: _Rail, fault: Fault | None, failed: bool) -> None:
        """Note whether a stream, which had `failed` before or not, fails now."""
        with self._changed:
            rail.failing += bool(fault) - failed
            rail.fault = fault.text if fault else rail.fault

    def _lost(self, rail: _Rail) -> None:
        """A stream has given up; with the last one its rail is lost, with the last rail the copy."""
        with self._changed:
            rail.streams -= 1
            rail.failing -= 1
            others = [one.way.address for one in self._rails if one.streams > 0]
            if not rail.streams and others:
                going_on = f"going on over {' and '.join(others)}"
                self._warnings.append(f"rail to {rail.way.address} is lost ({rail.fault}): {going_on}")
            elif not others:
                last = f"the last rail, to {rail.way.address}, is lost: {rail.fault}"
                self._error = self._error or f"{last}; run it again to go on"
            self._changed.notify_all()
