"""The state file: what it holds, that it is never half written, and what a new supervisor takes from it."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor import statefile
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.main import Shower
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.state import fresh
from fake_world import Start, World, config

KEYS = {
    "schema", "pair", "state", "since", "detail", "digest", "effective", "ranks", "rails", "restarts",
    "restart_marks", "baseline", "last_error", "last_canary", "cut", "warnings", "progress",
}  # fmt: skip


def test_every_state_has_all_fields_and_is_json() -> None:
    world = World()
    world.until("serving")
    for document in world.shown:
        assert document.keys() == KEYS
        assert json.loads(json.dumps(document)) == document


def test_loading_shows_progress_with_the_engines_estimate() -> None:
    world = World()
    world.api.load_time = 200
    world.ranks[0].gpu_gib, world.ranks[1].gpu_gib = 41.2, 40.8
    world.until("loading")
    world.ranks[0].log.append("CUDA rank 0 startup estimate 88.09 GiB within 95 GiB")
    world.run(2)
    world.ranks[0].log += ["drafter timings (ms)", "something that nobody knows"]
    document = world.run(72)
    assert document["detail"] == (
        "rank 0 41.2 of 88.09 GiB, rank 1 40.8 GiB, 70 s, drafter timings, no progress for 70 s"
    )
    assert document["progress"]["gpu_gib"] == [41.2, 40.8]
    assert document["progress"]["log_line"] == "something that nobody knows"
    assert document["progress"]["step"] == "drafter timings"
    assert [rank["estimate_gib"] for rank in document["ranks"]] == [88.09, None]


def test_loading_shows_the_containers_memory_where_the_gpu_has_no_figure() -> None:
    world = World()
    world.api.load_time = 200
    world.ranks[1].memory_gib = 3.25
    world.until("loading")
    assert "rank 0 ? GiB, rank 1 3.2 GiB in its container" in world.run(2)["detail"]


def test_a_rail_that_is_not_used_is_shown_with_the_reason(tmp_path: Path) -> None:
    world = World()
    world.ranks[0].dead_targets = {"203.0.113.2"}
    document = world.until("serving")
    assert [(rail["head"]["hca"], rail["used"]) for rail in document["rails"]] == [
        ("rocep1s0f1", True),
        ("roceP2p1s0f1", False),
    ]
    assert "does not reach the peer: not used" in document["rails"][1]["reason"]
    assert document["effective"]["rails"] == 1
    statefile.write(tmp_path / "state.json", document)
    world.supervise(statefile.restore(fresh(world.config, world.now, "t"), tmp_path / "state.json"))
    again = world.until("serving")
    assert (again["rails"], again["warnings"]) == (document["rails"], document["warnings"])


def test_a_rail_without_address_or_gid_is_shown_too() -> None:
    world = World()
    for rank in world.ranks:
        rank.devices[1] = replace(rank.devices[1], addresses=(), gids=())
    rail = world.until("serving")["rails"][1]
    assert (rail["used"], rail["head"]["address"], rail["head"]["gid_index"]) == (False, "", None)


def test_pool_and_window_are_the_engines() -> None:
    world = World()
    world.api.health["pool_free_tokens"] = 2600000
    assert world.until("serving")["effective"] == {
        "window": 1048576,
        "pool_tokens": 2684928,
        "pool_free_tokens": 2600000,
        "rails": 2,
    }


def test_since_is_the_beginning_of_the_shown_state() -> None:
    world = World()
    world.until("serving")
    since = world.shown[-1]["since"]
    world.run(100)
    assert world.shown[-1]["since"] == since
    assert len({document["since"] for document in world.shown if document["state"] == "starting"}) == 1


def test_written_whole_and_readable_by_all(tmp_path: Path) -> None:
    path = tmp_path / "run/state.json"
    statefile.write(path, {"state": "starting"})
    before = path.stat().st_ino
    statefile.write(path, {"state": "down"})
    assert json.loads(path.read_text()) == {"state": "down"}
    assert path.stat().st_ino != before
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [entry.name for entry in path.parent.iterdir()] == ["state.json"]


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", '{"restart_marks": ["x"]}'])
def test_broken_file_is_no_past(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "state.json"
    if text is not None:
        path.write_text(text)
    state = fresh(config(), 0.0, "t")
    assert statefile.restore(state, path) == state


def test_pair_that_is_down_leaves_no_past(tmp_path: Path) -> None:
    world = World(restart_limit=1)
    world.ranks[0].script = [Start(dies=1)] * 2
    world.until("down")
    path = tmp_path / "state.json"
    statefile.write(path, statefile.document(world.loop.state, world.now))
    state = fresh(config(), 0.0, "t")
    assert statefile.restore(state, path) == state


def test_shown_only_when_something_changed(tmp_path: Path) -> None:
    told: list[str] = []
    path = tmp_path / "state.json"
    show = Shower(path, {"pid": 7}, told.append)
    state = fresh(config(), 0.0, "t")
    show(state, 0.0)
    written = path.stat().st_ino
    show(state, 1.0)
    assert path.stat().st_ino == written
    assert json.loads(path.read_text())["pid"] == 7
    assert told == ["STATUS=starting: asking all nodes what they have"]


def test_systemd_is_asked_for_time_while_ranks_stop(tmp_path: Path) -> None:
    told: list[str] = []
    world = World()
    world.until("serving")
    shower = Shower(tmp_path / "state.json", None, told.append)
    world.loop.show = shower
    world.ranks[1].reachable = False
    submit = world.loop.submit
    world.loop.submit = lambda action: None if type(action).__name__ == "Stop" else submit(action)
    world.terminate()
    for _ in range(4):
        world.loop.turn(0)
    assert told[0] == "STATUS=stopping: stopping all ranks (asked to stop)"
    assert told.count("EXTEND_TIMEOUT_USEC=60000000") == 4


def test_systemd_is_asked_for_time_while_memory_comes_back(tmp_path: Path) -> None:
    told: list[str] = []
    world = World()
    world.until("serving")
    world.ranks[0].available_gib = 24.0
    world.terminate()
    world.run(3)
    world.loop.show = Shower(tmp_path / "state.json", None, told.append)
    world.run(1)
    assert told[0].startswith("STATUS=stopping: waiting for memory to come back")
    assert told.count("EXTEND_TIMEOUT_USEC=60000000") == 4
