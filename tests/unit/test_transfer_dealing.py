"""How files are dealt to streams: largest first, each once, and so that all streams end together."""

from __future__ import annotations

import heapq

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.transfer.dealing import Batch, File, Queue

MIB = 1 << 20


def files(*sizes: int) -> list[File]:
    return [File(f"f{number}", size) for number, size in enumerate(sizes)]


def filled(given: list[File], streams: int) -> Queue:
    """A queue to which nothing will be added."""
    queue = Queue(given, streams)
    queue.complete({one.name for one in given}, ())
    return queue


def drain(queue: Queue) -> list[Batch]:
    found = []
    while batch := queue.take():
        found.append(batch)
        queue.finish(batch)
    return found


def finish_times(sizes: list[int], speeds: list[float]) -> list[float]:
    """When each stream has nothing more to do, if stream n moves speeds[n] bytes a second."""
    queue = filled(files(*sizes), len(speeds))
    ready, ends = [(0.0, number) for number in range(len(speeds))], [0.0] * len(speeds)
    while ready:
        now, number = heapq.heappop(ready)
        if batch := queue.take():
            queue.finish(batch)
            ends[number] = now + batch.size / speeds[number]
            heapq.heappush(ready, (ends[number], number))
    return ends


def test_the_largest_come_first_and_every_file_once() -> None:
    sizes = [5 * MIB, 900 * MIB, 17, 300 * MIB, 0, 40 * MIB]
    batches = drain(Queue(files(*sizes), 4))
    names = [name for batch in batches for name in batch.names]
    assert sorted(names) == sorted(one.name for one in files(*sizes))
    assert [max(one.size for one in batch.files) for batch in batches[:2]] == [900 * MIB, 300 * MIB]


def test_many_small_files_go_together() -> None:
    assert len(drain(Queue(files(*[20_000] * 200), 4))) == 1


def test_batches_shrink_with_what_is_left() -> None:
    sizes = [batch.size for batch in drain(Queue(files(*[MIB] * 1024), 4))]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 128 * MIB
    assert sizes[-2] == 16 * MIB


@pytest.mark.parametrize(("speeds", "waste"), [([50e6] * 4, 1.06), ([80e6, 80e6, 20e6, 20e6], 1.13)])
def test_streams_end_together_whatever_their_speed(speeds: list[float], waste: float) -> None:
    ends = finish_times([4 * MIB] * 256, speeds)
    assert max(ends) < waste * 256 * 4 * MIB / sum(speeds)


def test_what_is_given_back_is_taken_by_the_next() -> None:
    queue = filled(files(100 * MIB, 50 * MIB), 2)
    lost = queue.take()
    assert lost and lost.names == ("f0",)
    queue.give_back(lost)
    assert queue.waiting == queue.left == 150 * MIB
    assert [batch.names for batch in drain(queue)] == [("f0",), ("f1",)]
    assert queue.over


def test_it_is_over_only_when_everything_has_arrived() -> None:
    queue = filled(files(1), 1)
    batch = queue.take()
    assert batch and queue.take() is None and not queue.over
    queue.finish(batch)
    assert queue.over
    assert filled([], 2).over


def test_what_is_there_is_left_out_as_soon_as_it_is_known() -> None:
    queue = Queue(files(100 * MIB, 50 * MIB, 40 * MIB), 4)
    batch = queue.take()
    assert batch and batch.names == ("f0",)
    queue.complete({"f0", "f2"}, [File("large", 900 * MIB)])
    assert queue.left == (100 + 40 + 900) * MIB
    assert not queue.over
    queue.finish(batch)
    assert [batch.names for batch in drain(queue)] == [("large",), ("f2",)]
    assert queue.over


def test_more_may_come_until_all_is_known() -> None:
    queue = Queue([], 1)
    assert not queue.over and queue.take() is None
