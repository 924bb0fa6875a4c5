"""The pass that ends a copy: all links, in order, over a connection that is made while files still move."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from . import said, words
from .plan import Plan, Way
from .programs import Programs
from .said import Fault, Result
from .streams import CopyError


class LastPass:
    """Connects at once over `way` and waits there for `run`; rsync wants no names before."""

    def __init__(self, plan: Plan, programs: Programs, names: Sequence[str], way: Way) -> None:
        self._plan, self._programs, self._names, self._way = plan, programs, names, way
        self._begun = threading.Event()
        self._ended: Fault | None = Fault("the last pass broke off", hopeless=False)
        self._waiting = threading.Thread(target=self._wait, daemon=True)
        self._waiting.start()

    def run(self, ways: Sequence[Way]) -> None:
        """Send over the first of `ways` that does it. Raises CopyError.

        In order: a link never comes before what it points to.
        """
        fault: Fault | None = Fault("no rail is left", hopeless=False)
        if self._way in ways:
            # It may have ended meanwhile: a worker does not wait for ever.
            fault = self._go()
        for way in ways:
            if not fault or fault.hopeless:
                break
            fault = self._fault(way, self._programs.run(words.finish(self._plan, way), self._names, _quiet))
        if fault:
            raise CopyError(fault.text)

    def _go(self) -> Fault | None:
        self._begun.set()
        self._waiting.join()
        return self._ended

    def _wait(self) -> None:
        try:
            result = self._programs.run(words.finish(self._plan, self._way), self._late(), _quiet)
        except OSError as error:  # nobody could begin it, or hear it: another may
            self._ended = Fault(str(error), hopeless=False)
        else:
            self._ended = self._fault(self._way, result)

    def _late(self) -> Iterator[str]:
        self._begun.wait()
        yield from self._names

    def _fault(self, way: Way, result: Result) -> Fault | None:
        return said.fault(result, self._plan.user, way.address)


def _quiet(_: str) -> None:
    """Nobody asks how far a pass is that moves no content."""
