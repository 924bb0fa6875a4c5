"""Memory around a start: files that the kernel keeps, and a driver that gets none."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.agent import caches, verbs
from ansible_collections.twinserve.pair.plugins.module_utils.agent.__main__ import main
from ansible_collections.twinserve.pair.plugins.module_utils.meminfo import Memory
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor import act
from fake_node import LINK, PLAN, FakeNode
from fake_world import World

STARVED = "NVRM: nvAssertOkFailedNoLog: Assertion failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)"
HARDLY_ANY = Memory(119.7, 67.9, 2.0)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNode:
    return FakeNode(tmp_path, monkeypatch)


def ordered(node: FakeNode) -> dict[str, str]:
    return {path.name: path.read_text() for path in (node.folder / "vm").iterdir()}


def test_l16_what_the_kernel_keeps_of_files_is_dropped_before_a_start(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "execvp", lambda _file, _argv: None)
    node.link(LINK)
    verbs.run()
    assert ordered(node) == {"drop_caches": "3"}
    (node.folder / "vm/drop_caches").unlink()
    (node.folder / "vm").rmdir()
    verbs.run()
    assert "drop_caches could not be written" in capsys.readouterr().err, "said, and the rank starts"


def guards(node: FakeNode) -> list[str]:
    return [call for call in node.calls if call.startswith("systemd-run ")]


@pytest.mark.parametrize(
    ("free", "available", "acts"),
    [
        (7.9, 67.9, True),
        (8.0, 67.9, False),
        (3.0, 10.9, False),  # nothing that would be won
    ],
)
def test_l16_the_guard_acts_when_hardly_anything_is_free_and_much_is_kept(
    node: FakeNode, free: float, available: float, acts: bool
) -> None:
    assert caches.guard(Memory(119.7, available, free)) == []
    assert len(guards(node)) == acts


@pytest.mark.parametrize(
    ("guard", "words", "acts"),
    [
        (True, ["state", "loading"], True),
        (True, ["state"], False),
        (False, ["state", "loading"], False),
    ],
)
def test_l16_the_guard_is_a_setting_and_ends_with_the_loading(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, guard: bool, words: list[str], acts: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(verbs, "read_memory", lambda _root: HARDLY_ANY)
    node.plan({**PLAN, "load_guard": guard})
    assert main(words) == 0
    assert len(guards(node)) == acts


def test_l16_a_look_waits_for_no_room_and_starts_one_guard_at_a_time(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the kernel is told to do can take longer than the supervisor waits for the look."""
    monkeypatch.setattr(verbs, "read_memory", lambda _root: HARDLY_ANY)
    node.plan({**PLAN, "load_guard": True})
    assert verbs.state(loading=True)["warnings"] == []
    assert ordered(node) == {}
    (started,) = guards(node)
    assert started.endswith("--unit=twinserve-guard.service --description=Twinserve load_guard "
                            "/usr/local/sbin/twinserve-rank unit-guard")  # fmt: skip
    node.answer("systemctl_show_twinserve-guard.service", "ActiveState=active\n")
    verbs.state(loading=True)
    assert guards(node) == [started]


def test_l16_the_guards_unit_makes_room_and_rests(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(caches, "_REST", 0.2)
    began = time.monotonic()
    assert main(["unit-guard"]) == 0
    assert ordered(node) == {"drop_caches": "3", "compact_memory": "1"}
    assert time.monotonic() - began >= 0.2


def test_l16_a_guard_that_cannot_be_started_is_a_warning(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verbs, "read_memory", lambda _root: HARDLY_ANY)
    node.plan({**PLAN, "load_guard": True})
    node.answer("systemd-run", "Failed to start transient service unit: No space left", 1)
    (warning,) = verbs.state(loading=True)["warnings"]
    assert warning.startswith("load_guard could not make room: systemd-run ")
    assert "No space left" in warning


def test_l16_a_kernel_log_that_is_slow_costs_no_look(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 3 * caches._QUICK < act._QUICK
    monkeypatch.setattr(caches, "_QUICK", 0.2)
    node.link(LINK)
    node.answer("journalctl_-k", STARVED, do="exec sleep 5")
    began = time.monotonic()
    assert verbs.state(loading=True)["starved"] is None
    assert time.monotonic() - began < 3


def test_l16_the_kernel_log_is_asked_since_this_start_and_only_while_loading(node: FakeNode) -> None:
    node.link(LINK)
    os.utime(node.folder / "run/link.json", (1000, 1000))
    node.answer("journalctl_-k", f"NVRM: loading\n  {STARVED}\n")
    assert verbs.state()["starved"] is None
    assert verbs.state(loading=True)["starved"] == STARVED
    (call,) = [call for call in node.calls if call.startswith("journalctl -k")]
    assert call.endswith("--since @1000")
    node.answer("journalctl_-k", "No journal files were found", 1)
    assert verbs.state(loading=True)["starved"] is None


def test_l16_a_driver_without_memory_stops_both_ranks_at_once() -> None:
    world = World()
    world.until("loading")
    world.ranks[1].starved = STARVED
    document = world.until("down")
    said = f"rank 1 (spark-b): the NVIDIA driver ran out of memory while loading ({STARVED}); "
    assert document["detail"] == f"{said}stop other work there, or set load_guard: true"
    assert [calls.count("kill") for calls in world.calls] == [1, 1]
    assert document["restarts"] == []


def test_l16_a_pair_that_was_found_running_is_not_stopped_for_an_old_line() -> None:
    world = World()
    for rank in world.ranks:
        rank.run()
        rank.starved = STARVED
    assert world.until("serving")["restarts"] == []
    assert [calls.count("kill") for calls in world.calls] == [0, 0]


def test_l15_a_start_waits_for_memory_and_says_who_has_it() -> None:
    world = World()
    short = '71 GiB available, about 110 needed; in use by container "comfy" (GPU)'
    world.ranks[1].hindrances = [short]
    document = world.run(70)
    assert (document["state"], document["detail"]) == ("down", f"waiting: worker spark-b: {short}")
    assert [calls.count("start") for calls in world.calls] == [0, 0]
    world.ranks[1].hindrances = []
    assert world.until("serving")["restarts"] == []
