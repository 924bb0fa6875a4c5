"""Streams over rails that break: batches come back, others go on, the last rail's death is told."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.transfer import streams as module
from ansible_collections.twinserve.pair.plugins.module_utils.transfer.dealing import Batch, File, Queue
from ansible_collections.twinserve.pair.plugins.module_utils.transfer.plan import Way
from ansible_collections.twinserve.pair.plugins.module_utils.transfer.said import Fault
from ansible_collections.twinserve.pair.plugins.module_utils.transfer.streams import (
    TRIES,
    CopyError,
    Counted,
    Streams,
)

MAIN, TWIN = Way("198.51.100.2"), Way("203.0.113.2")
DEAD = Fault("No route to host", hopeless=False)
FULL = Fault("No space left on device", hopeless=True)


class World:
    """Rails that break and mend at a word; notes who brought what."""

    def __init__(self) -> None:
        self.broken: dict[str, Fault] = {}
        self.only_once: dict[str, Fault] = {}
        self.sent: list[tuple[str, str]] = []
        self.asked: Counter[str] = Counter()
        self.halted = 0
        self.held = {MAIN.address, TWIN.address}
        self.gate = threading.Event()
        self.gate.set()

    def send(self, way: Way, batch: Batch, counted: Counted) -> Fault | None:
        counted(batch.size // 2)
        if way.address in self.held:
            self.gate.wait(10)
        fault = self.only_once.pop(way.address, None) or self.broken.get(way.address)
        if not fault:
            counted(batch.size)
            self.sent += [(way.address, name) for name in batch.names]
        return fault

    def answers(self, way: Way) -> Fault | None:
        self.asked[way.address] += 1
        return self.broken.get(way.address)

    def halt(self) -> None:
        self.halted += 1


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(module, "_PAUSE", 0.01)
    return World()


def begin(world: World, ways: tuple[Way, ...] = (MAIN, TWIN), each: int = 2, count: int = 40) -> Streams:
    files = [File(f"f{number}", 20 << 20) for number in range(count)]
    streams = Streams(Queue(files, each * len(ways)), ways, each, world)
    streams.complete({one.name for one in files}, ())
    streams.start()
    return streams


def names(world: World) -> list[str]:
    return sorted(name for _, name in world.sent)


EVERY = sorted(f"f{number}" for number in range(40))


def test_all_rails_carry_and_every_file_is_sent_once(world: World) -> None:
    world.gate.clear()
    streams = begin(world)
    assert not streams.wait(0.05)
    world.gate.set()
    assert streams.wait(10)
    assert names(world) == EVERY
    assert {rail for rail, _ in world.sent} == {MAIN.address, TWIN.address}
    assert sum(streams.moved().values()) == 40 * (20 << 20)
    assert streams.alive() == [MAIN, TWIN]


def test_a_rail_that_dies_gives_back_what_it_had(world: World) -> None:
    world.broken[TWIN.address] = DEAD
    world.gate.clear()
    streams = begin(world)
    assert not streams.wait(0.05), "both rails hold a batch"
    world.gate.set()
    assert streams.wait(10)
    assert world.sent and {rail for rail, _ in world.sent} == {MAIN.address}
    assert names(world) == EVERY
    assert streams.moved()[TWIN.address] == 0


def test_a_lost_rail_is_told_and_with_it_the_way_on(world: World) -> None:
    world.broken[TWIN.address] = DEAD
    world.held = {MAIN.address}
    world.gate.clear()
    streams = begin(world)
    while not (warnings := streams.count().warnings):
        assert not streams.wait(0.01)
    world.gate.set()
    assert streams.wait(10)
    assert warnings == ["rail to 203.0.113.2 is lost (No route to host): going on over 198.51.100.2"]
    assert (streams.count().rails, streams.alive()) == (1, [MAIN])
    assert names(world) == EVERY


def test_a_rail_that_fails_does_not_count_and_is_told_also_when_the_others_end_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAUSE", 10)
    world.broken[TWIN.address] = DEAD
    world.held = {MAIN.address}
    world.gate.clear()
    streams = begin(world)
    while streams.count().rails > 1:
        assert not streams.wait(0.01)
    assert streams.count().warnings == [], "it may come back"
    world.gate.set()
    assert streams.wait(10)
    assert streams.count().warnings == ["rail to 203.0.113.2 failed (No route to host)"]
    assert names(world) == EVERY


def test_a_rail_that_stumbles_once_goes_on(world: World) -> None:
    world.only_once[MAIN.address] = DEAD
    streams = begin(world, (MAIN,), each=1)
    assert streams.wait(10)
    assert names(world) == EVERY
    assert world.asked[MAIN.address] == 1, "asked before it took another batch"
    assert (streams.count().rails, streams.count().warnings) == (1, [])


def test_the_last_rails_death_is_an_error_that_names_it(world: World) -> None:
    world.broken[MAIN.address] = DEAD
    streams = begin(world, (MAIN,), each=1)
    with pytest.raises(CopyError) as refused:
        while not streams.wait(1):
            pass
    assert str(refused.value) == (
        "the last rail, to 198.51.100.2, is lost: No route to host; run it again to go on"
    )
    assert world.asked[MAIN.address] == TRIES - 1


def test_what_is_hopeless_ends_all_streams_at_once(world: World) -> None:
    world.broken[MAIN.address] = FULL
    with pytest.raises(CopyError, match="^No space left on device$"):
        while not begin(world).wait(1):
            pass
    assert world.halted == 1


def test_a_stream_that_cannot_work_on_this_node_ends_the_copy(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(world, "send", fail)
    streams = begin(world)
    with pytest.raises(CopyError, match=r"Too many open files; run it again to go on"):
        streams.wait(10)
    assert world.halted, "the others end, too"


def test_bytes_count_while_they_move_and_not_when_they_come_back(world: World) -> None:
    world.gate.clear()
    streams = begin(world, (MAIN,), each=1, count=1)
    while streams.count().left == 20 << 20:
        assert not streams.wait(0.01)
    assert streams.count().left == 10 << 20
    world.only_once[MAIN.address] = DEAD
    world.gate.set()
    assert streams.wait(10)
    assert streams.count().left == 0
    assert streams.moved() == {MAIN.address: 20 << 20}


def test_it_begins_before_it_is_known_what_is_missing(world: World) -> None:
    streams = Streams(Queue([File("a", 1)], 1), (MAIN,), 1, world)
    streams.start()
    while not world.sent:
        assert not streams.wait(0.01)
    assert not streams.wait(0.05), "more may come"
    streams.complete({"a", "b"}, [File("b", 1)])
    assert streams.wait(10)
    assert names(world) == ["a", "b"]


def test_nothing_to_send_is_over_at_once(world: World) -> None:
    assert begin(world, count=0).wait(10)
