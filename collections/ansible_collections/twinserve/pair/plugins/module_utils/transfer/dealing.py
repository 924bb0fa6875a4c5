"""The queue of files that streams take from, largest first. Pure."""

from __future__ import annotations

from bisect import insort
from collections.abc import Container, Iterable
from dataclasses import dataclass

# A batch is one call of rsync. The share of what is left shrinks with it, so that all streams end together;
# below `_SMALLEST` bytes the call would cost more than it moves.
_SHARE = 2
_SMALLEST = 16 << 20


@dataclass(frozen=True)
class File:
    """A file below the source's folder; `size` in bytes; `links` to it travel with it."""

    name: str
    size: int
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class Batch:
    """Files that one stream sends in one go."""

    files: tuple[File, ...]

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(one.size for one in self.files)

    @property
    def names(self) -> tuple[str, ...]:
        """The files' names, each followed by its links'."""
        return tuple(name for one in self.files for name in (one.name, *one.links))


class Queue:
    """Every file is with one stream at most, and is out until it has arrived.

    It begins with files that may be sent before it is known what is missing; `complete` tells the rest.
    """

    def __init__(self, files: Iterable[File], streams: int) -> None:
        self._waiting = sorted(files, key=_order)
        self._streams = max(1, streams)
        self._out: set[Batch] = set()
        self._complete = False

    def complete(self, lacking: Container[str], more: Iterable[File]) -> None:
        """Leave out what waits and is not `lacking`, and add `more`; nothing else will come."""
        known = [one for one in self._waiting if one.name in lacking]
        self._waiting = sorted([*known, *more], key=_order)
        self._complete = True

    @property
    def over(self) -> bool:
        """Whether everything has arrived."""
        return self._complete and not self._waiting and not self._out

    @property
    def left(self) -> int:
        """Bytes that have not arrived."""
        return self.waiting + sum(batch.size for batch in self._out)

    @property
    def waiting(self) -> int:
        """Bytes that no stream has taken."""
        return sum(one.size for one in self._waiting)

    def take(self) -> Batch | None:
        """The next batch; None when nothing waits (what is out may still come back)."""
        if not self._waiting:
            return None
        room = max(_SMALLEST, self.waiting // (_SHARE * self._streams))
        chosen, left = [self._waiting[0]], []
        room -= chosen[0].size
        for one in self._waiting[1:]:
            if one.size <= room:
                chosen.append(one)
                room -= one.size
            else:
                left.append(one)
        self._waiting = left
        batch = Batch(tuple(chosen))
        self._out.add(batch)
        return batch

    def finish(self, batch: Batch) -> None:
        """All of it has arrived."""
        self._out.remove(batch)

    def give_back(self, batch: Batch) -> None:
        """Its stream broke. What arrived of it costs the next one only a look."""
        self._out.remove(batch)
        for one in batch.files:
            insort(self._waiting, one, key=_order)


def _order(one: File) -> tuple[int, str]:
    return -one.size, one.name
