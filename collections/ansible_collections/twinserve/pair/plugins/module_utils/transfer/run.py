"""One copy from the look at what is missing to the last link."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .. import page_cache, progress
from ..ssh_client import FAILED
from . import said, words
from .dealing import Batch, File, Queue
from .last_pass import LastPass
from .plan import Load, Plan, Way, load
from .programs import Programs
from .streams import CopyError, Counted, Streams

_EVERY = 1.0  # seconds between two reports
# Bytes from which a file gets an empty one to grow in (see `words.make_room`); a smaller one that was cut off
# is sent again.
_LARGE = 64 << 20
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
        streams = self._streams(wanted, self._plan.rails)
        streams.start()
        try:
            way, lacks = self._look(wanted)
        except CopyError as error:
            raise CopyError(streams.hopeless or str(error)) from error
        if way is self._plan.lan:
            streams = self._streams(wanted, [way])
            streams.start()
        last = None
        if lacks.links or lacks.files.intersection(wanted.last):
            last = LastPass(self._plan, self._programs, wanted.last, way)
        files = [one for one in wanted.payloads if one.name in lacks.files]
        large = [one for one in files if one.size >= _LARGE]
        self._make_room(way, [one for one in large if one.name in lacks.new])
        # Small ones that came before large ones would keep the large ones to the end, and one rail with them.
        streams.complete(lacks.files, files if _any_large(wanted) else ())
        self._follow(streams, sum(one.size for one in wanted.payloads))
        if last:
            last.run(streams.alive())
        self._tell(_summary(streams.moved(), time.monotonic() - began))

    def _streams(self, wanted: Load, ways: Sequence[Way]) -> Streams:
        """Streams that begin at once when no file is large: rsync itself leaves out what is there."""
        each = self._plan.streams or streams_for(os.cpu_count() or 1, len(ways))
        ahead = () if _any_large(wanted) else wanted.payloads
        return Streams(Queue(ahead, each * len(ways)), ways, each, self)

    def _look(self, wanted: Load) -> tuple[Way, said.Lacking]:
        """What is missing, asked over the first rail that answers, or over the LAN; and which it was."""
        plan, faults = self._plan, []
        names = [*(one.name for one in wanted.payloads), *wanted.last]
        for way in [*plan.rails, *([plan.lan] if plan.lan else [])]:
            lines: list[str] = []
            result = self._programs.run(words.look(plan, way), names, lines.append)
            fault = said.fault(result, plan.user, way.address)
            if fault is None:
                if way is plan.lan:
                    failed = " and ".join(one.address for one in plan.rails)
                    why = f"ssh to {failed} failed" if failed else "there is no rail"
                    self._warn(f"copying over the LAN ({way.address}): {why}")
                return way, said.lacking(lines)
            if fault.hopeless:
                raise CopyError(fault.text)
            faults.append(f"{way.address}: {fault.text}")
        raise CopyError(f"head does not reach {plan.worker} by ssh ({'; '.join(faults) or 'no rail'})")

    def _make_room(self, way: Way, files: Sequence[File]) -> None:
        if not files:
            return
        with tempfile.TemporaryDirectory(prefix="twinserve-") as folder:
            for room in (Path(folder, room) for one in files for room in words.rooms(self._plan, one.name)):
                room.parent.mkdir(parents=True, exist_ok=True)
                room.touch(mode=0o600)
            Path(folder).chmod(0o755)  # folders that are new on the worker are made like these
            argv = words.make_room(self._plan, way, folder)
            result = self._programs.run(argv, (), lambda _: None)
        # A rail that breaks just now is left to the streams to find out.
        if (fault := said.fault(result, self._plan.user, way.address)) and fault.hopeless:
            raise CopyError(fault.text)

    def _follow(self, streams: Streams, total: int) -> None:
        """Report until everything has arrived."""
        try:
            while not streams.wait(_EVERY):
                self._report(streams, total)
        finally:
            self._report(streams, total)

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

    def _report(self, streams: Streams, total: int) -> None:
        count = streams.count()
        for text in count.warnings:
            if text not in self._warnings:
                self._warn(text)
        self._meter.add(time.monotonic(), total - count.left)
        how = f"on {count.rails} rail{'' if count.rails == 1 else 's'}"
        numbers = self._meter.numbers(total, time.time())
        progress.note({**numbers, "how": how, "warnings": self._warnings})

    def _warn(self, text: str) -> None:
        self._warnings.append(text)
        self._tell(f"warn {text}")


def streams_for(cores: int, rails: int) -> int:
    """Streams for each rail: two, so that one moves while the other starts; more where cores are idle."""
    return min(4, max(2, cores // (4 * max(1, rails))))


def _any_large(wanted: Load) -> bool:
    return any(one.size >= _LARGE for one in wanted.payloads)


def _summary(moved: Mapping[str, int], seconds: float) -> str:
    size = sum(moved.values())
    if not size:
        return "nothing to copy: every file is there"
    by_rail = ", ".join(f"{address} {_size(one)}" for address, one in moved.items())
    return f"copied {_size(size)} in {seconds:.0f} s, {_size(int(size / seconds))}/s ({by_rail})"


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
