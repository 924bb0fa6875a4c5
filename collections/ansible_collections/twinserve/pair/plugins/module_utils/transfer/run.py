"""One copy from the look at what is missing to the last link."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from .. import page_cache, progress
from ..ssh_client import FAILED
from . import said, words
from .dealing import Batch, File, Queue
from .plan import Load, Plan, Way, load
from .programs import Programs
from .streams import CopyError, Counted, Streams

_EVERY = 1.0  # seconds between two reports
_SPAN = 15.0  # seconds over which the rate is taken: a rail that is lost shows soon


class Copy:
    """Runs a plan. Sentences for people go to `tell`."""

    def __init__(self, plan: Plan, tell: Callable[[str], None], programs: Programs | None = None) -> None:
        self._plan, self._tell, self._programs = plan, tell, programs or Programs()
        self._meter = progress.Meter(_SPAN)
        self._warnings: list[str] = []

    def run(self) -> None:
        """Copy all that is missing. Raises CopyError or PlanError."""
        began, wanted = time.monotonic(), load(self._plan)
        ways, lacks = self._look(wanted)
        files = [one for one in wanted.payloads if one.name in lacks.files]
        if files:
            self._make_room(ways[0], [one for one in files if one.name in lacks.new])
            ways, summary = self._send(wanted, files, ways, began)
        else:
            summary = "nothing to copy: every file is there"
        if lacks.links or lacks.files.intersection(wanted.last):
            self._finish(ways, wanted.last)
        self._tell(summary)

    def _look(self, wanted: Load) -> tuple[list[Way], said.Lacking]:
        """What is missing, asked over the first rail that answers, or over the LAN; and the ways to use."""
        plan, faults = self._plan, []
        names = [*(one.name for one in wanted.payloads), *wanted.last]
        for way in [*plan.rails, *([plan.lan] if plan.lan else [])]:
            lines: list[str] = []
            result = self._programs.run(words.look(plan, way), names, lines.append)
            fault = said.fault(result, plan.user, way.address)
            if fault is None:
                if way is plan.lan:
                    failed = " and ".join(one.address for one in plan.rails)
                    self._warn(f"copying over the LAN ({way.address}): ssh to {failed} failed")
                    return [way], said.lacking(lines)
                return [way, *(one for one in plan.rails if one is not way)], said.lacking(lines)
            if fault.hopeless:
                raise CopyError(fault.text)
            faults.append(f"{way.address}: {fault.text}")
        raise CopyError(f"head does not reach {plan.worker} by ssh ({'; '.join(faults) or 'no rail'})")

    def _make_room(self, way: Way, files: Iterable[File]) -> None:
        with tempfile.TemporaryDirectory(prefix="twinserve-") as folder:
            for one in files:
                Path(folder, Path(one.name).name).touch(mode=0o600)
            argv = words.make_room(self._plan, way, folder)
            result = self._programs.run(argv, (), lambda _: None)
        # A rail that breaks just now is left to the streams to find out.
        if (fault := said.fault(result, self._plan.user, way.address)) and fault.hopeless:
            raise CopyError(fault.text)

    def _send(
        self, wanted: Load, files: Sequence[File], ways: Sequence[Way], began: float
    ) -> tuple[list[Way], str]:
        """All payloads over all rails; returns the rails that are left, and what was done."""
        each = self._plan.streams or streams_for(os.cpu_count() or 1, len(ways))
        queue = Queue(files, each * len(ways))
        streams = Streams(queue, ways, each, self)
        total = sum(one.size for one in wanted.payloads)
        there = total - sum(one.size for one in files)
        streams.start()
        try:
            while not streams.wait(_EVERY):
                self._report(streams, there, total)
        finally:
            self._report(streams, there, total)
        by_rail = ", ".join(f"{address} {_size(moved)}" for address, moved in streams.moved().items())
        sent, seconds = total - there, time.monotonic() - began
        rate = _size(int(sent / seconds))
        return streams.alive(), f"copied {_size(sent)} in {seconds:.0f} s, {rate}/s ({by_rail})"

    def answers(self, way: Way) -> said.Fault | None:
        """Whether ssh answers there: the key's own refusal of any command but rsync's is an answer."""
        result = self._programs.run(words.knock(self._plan, way), (), lambda _: None)
        return said.fault(result, self._plan.user, way.address) if result.code == FAILED else None

    def halt(self) -> None:
        """End all streams at once."""
        self._programs.end()

    def send(self, way: Way, batch: Batch, counted: Counted) -> said.Fault | None:
        """Send a batch, and forget what was read for it."""

        def told(line: str) -> None:
            if (moved := said.bytes_moved(line)) is not None:
                counted(moved)

        result = self._programs.run(words.send(self._plan, way), batch.names, told)
        fault = said.fault(result, self._plan.user, way.address)
        if fault is None:
            for name in batch.names:
                page_cache.forget(self._plan.source / name)
        return fault

    def _finish(self, ways: Sequence[Way], names: Sequence[str]) -> None:
        """One pass, in order: a link never comes before what it points to."""
        fault: said.Fault | None = None
        for way in ways:
            result = self._programs.run(words.finish(self._plan, way), names, lambda _: None)
            fault = said.fault(result, self._plan.user, way.address)
            if fault is None:
                return
        raise CopyError(fault.text if fault else "no rail is left")

    def _report(self, streams: Streams, there: int, total: int) -> None:
        count = streams.count()
        for text in count.warnings:
            if text not in self._warnings:
                self._warn(text)
        self._meter.add(time.monotonic(), there + count.done)
        how = f"on {count.rails} rail{'' if count.rails == 1 else 's'}"
        numbers = self._meter.numbers(total, time.time())
        progress.note({**numbers, "how": how, "warnings": self._warnings})

    def _warn(self, text: str) -> None:
        self._warnings.append(text)
        self._tell(f"warn {text}")


def streams_for(cores: int, rails: int) -> int:
    """Streams for each rail: two, so that one moves while the other starts; more where cores are idle."""
    return min(4, max(2, cores // (4 * rails)))


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
