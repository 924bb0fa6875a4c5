"""The supervisor while the pair serves: deaths, hangs, outages, adoption, the restart limit, SIGTERM."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.render import digest
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor import events, statefile
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.client import ClientError
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.observe import absorb
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.serving import serve
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.smoke import Reply
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.state import (
    Canary,
    Phase,
    State,
    fresh,
)
from fake_world import Start, World

COLLAPSED = Reply(200, "!!!!!!!!!!!!!!!!")


def serving(**changes: Any) -> World:
    world = World(**changes)
    world.until("serving")
    world.run(5)
    for rank in world.ranks:
        rank.calls.clear()
    return world


def silent(_name: str) -> dict[str, Any]:
    """Look at an API that gives no answer."""
    raise ClientError("/v1/models: no answer within 5 s")


@pytest.mark.parametrize("rank", [0, 1])
def test_o01_death_of_either_rank_restarts_both(rank: int) -> None:
    world = serving()
    world.ranks[rank].die(137)
    died = world.now
    while world.ranks[rank].unit != "active":
        world.run(0.25)
        assert world.now - died < 15
    document = world.until("serving")
    assert [calls.count("stop") for calls in world.calls] == [1, 1]
    assert [calls.count("start") for calls in world.calls] == [1, 1]
    assert document["last_error"] == f"rank {rank} exited (code 137)"
    assert len(document["restarts"]) == 1


def test_o01_rank_that_was_restarted_by_somebody_is_a_death() -> None:
    world = serving()
    world.ranks[1].run()
    world.run(5)
    assert world.until("serving")["last_error"] == "rank 1 was replaced by another container"
    assert world.ranks[0].calls.count("stop") == 1


def test_container_that_went_before_its_client_is_given_one_more_look() -> None:
    world = serving()
    world.ranks[1].container = None
    world.run(2.25)
    world.ranks[1].die(139)
    world.run(3)
    assert world.until("serving")["last_error"] == "rank 1 exited (code 139)"


def test_o12_fourth_death_in_an_hour_ends_down() -> None:
    world = serving()
    for _ in range(4):
        world.ranks[0].die(1)
        world.run(5)
        document = world.until("serving", "down")
    assert document["state"] == "down"
    assert document["detail"] == "gave up after 3 restarts; last error: rank 0 exited (code 1)"
    assert all(rank.container is None for rank in world.ranks)


def test_o12_old_restarts_are_forgotten() -> None:
    world = serving(restart_window=600)
    for _ in range(6):
        world.ranks[0].die(1)
        world.run(5)
        assert world.until("serving", "down")["state"] == "serving"
        world.run(300, tick=1)


def test_l03_window_is_tried_in_full_again_at_a_restart() -> None:
    world = World()
    line = "largest fitting prompt-plus-reply window: 786432 tokens"
    world.ranks[0].script = [Start(dies=1, log=(line,))]
    world.until("serving")
    world.ranks[1].die()
    world.run(5)
    document = world.until("serving")
    assert [link["append"] for link in world.ranks[0].links] == [[], ["--context", "786432"], []]
    assert document["warnings"] == []


def test_o12_restart_waits_until_the_memory_is_back() -> None:
    world = serving()
    world.ranks[0].die()
    world.ranks[1].available_gib = 24.0
    document = world.run(30)
    assert (
        document["detail"] == "waiting for memory to come back: rank 1 has 24 of 110 GiB of memory available"
    )
    assert "start" not in world.ranks[0].calls
    world.ranks[1].available_gib = 108.0
    assert world.until("serving")["warnings"] == []


def test_memory_that_stays_away_is_said_and_not_waited_for_for_ever() -> None:
    world = serving()
    world.ranks[0].die()
    world.ranks[1].available_gib = 24.0
    world.run(60)
    assert world.until("serving")["warnings"] == [
        "memory did not come back within 60 s: rank 1 has 24 of 110 GiB of memory available"
    ]


def test_memory_of_leftovers_is_back_when_it_stops_growing() -> None:
    world = World()
    world.ranks[0].run()
    world.ranks[0].available_gib = 30.0
    for _ in range(40):
        world.ranks[0].available_gib = min(110.0, world.ranks[0].available_gib + 2)
        world.run(0.5)
    assert "start" not in world.ranks[0].calls
    world.until("serving")


@pytest.mark.parametrize("seconds", [2, 20, 300])
def test_o16_outage_of_ssh_changes_nothing_while_the_pair_answers(seconds: int) -> None:
    world = serving()
    world.ranks[1].reachable = False
    document = world.run(seconds, tick=0.5)
    assert document["state"] == "serving"
    if seconds > 20:
        assert document["detail"].startswith("degraded: worker spark-b unreachable for 300 s")
    world.ranks[1].reachable = True
    assert world.run(5)["detail"].startswith("window 1048576")
    assert world.calls == [[], []]


def test_o16_worker_that_comes_back_without_its_rank_is_a_death() -> None:
    world = serving()
    world.ranks[1].reachable = False
    world.run(30)
    assert world.calls == [[], []]
    world.ranks[1]._stop("")
    world.ranks[1].reachable = True
    back = world.now
    world.run(3)
    document = world.until("serving")
    assert document["last_error"] == "rank 1 is gone"
    assert world.now - back - world.api.load_time < 30


def test_worker_that_is_gone_with_its_power_does_not_hold_the_head_for_long() -> None:
    world = serving()
    world.ranks[1].reachable = False
    world.ranks[1].unit = "inactive"
    document = world.run(200)
    assert "worker spark-b unreachable by ssh" in document["detail"]
    assert "unreachable for" in (document["last_error"] or "")
    assert world.ranks[0].container is None
    assert len(document["restarts"]) == 1
    world.run(2000, tick=1)
    world.ranks[1]._stop("")
    world.ranks[1].reachable = True
    assert len(world.until("serving")["restarts"]) == 1


def test_other_requests_that_run_long_are_not_cut_by_an_outage() -> None:
    world = serving()
    world.api.hangs = True
    world.api.health["requests_running"] = 3
    world.ranks[1].reachable = False
    assert world.run(300)["state"] == "serving"
    assert world.calls == [[], []]


def test_slow_canary_behind_a_long_prefill_is_no_death() -> None:
    world = serving()
    world.api.hangs = True
    for _ in range(10):
        world.run(200, tick=1)
        world.api.health["completion_tokens_total"] += 1
    assert world.shown[-1]["state"] == "serving"
    assert "canary unanswered for" in world.shown[-1]["detail"]
    assert world.calls == [[], []]


def test_o15_hang_is_lack_of_progress_beyond_the_limit() -> None:
    world = serving()
    world.api.hangs = True
    assert world.run(800, tick=1)["state"] == "serving"
    world.until("starting")
    world.api.hangs = False
    document = world.until("serving")
    assert document["last_error"].startswith("no progress for 90")
    assert world.ranks[0].calls.count("kill") == 1
    assert world.heard('last /health: {"completion_tokens_total"')
    assert len(document["restarts"]) == 1


@pytest.mark.parametrize(
    "health",
    [{"streams": {"prefilling": 1}, "requests_running": 1}, {"requests_running": 2}],
    ids=["reads a prompt", "runs requests"],
)
def test_reading_a_million_tokens_is_no_hang(health: dict[str, Any]) -> None:
    world = serving(hang_limit=301)
    world.api.health |= health
    world.api.hangs = True
    assert world.run(1000, tick=1)["state"] == "serving"
    (asked,) = world.parked
    assert isinstance(asked, events.Ask)
    assert asked.timeout > 1800
    world.api.health["completion_tokens_total"] += 1
    assert world.run(1700, tick=1)["state"] == "serving"
    assert world.calls == [[], []]
    world.until("starting")
    world.api.hangs = False
    assert world.until("serving")["last_error"].startswith("no progress for 180")


@pytest.mark.parametrize(
    ("others", "after"), [(0, 301), (1, 1800)], ids=["the canary alone", "somebody else"]
)
def test_a_canary_that_is_read_itself_is_no_work(others: int, after: int) -> None:
    world = serving(hang_limit=301)
    world.run(50)
    world.api.hangs = True
    # Both engines that count requests when they come and those that count them at their end say as much.
    world.api.health |= {"streams": {"prefilling": 1}, "requests_running": 1, "requests_total": 1 + others}
    hung = world.now
    world.until("starting", limit=3600)
    assert after < world.now - hung < after + 70


@pytest.mark.parametrize("seconds", [50, 51, 52, 53, 54])
def test_canaries_that_come_more_often_than_looks_are_no_work(seconds: int) -> None:
    world = serving(hang_limit=301, canary_interval=1)
    world.api.health |= {"requests_total": 0}
    world.run(seconds)
    world.api.hangs = True
    world.api.health |= {"requests_running": 1, "requests_total": world.api.health["requests_total"] + 1}
    hung = world.now
    world.until("starting", limit=3600)
    assert 301 < world.now - hung < 380


def test_a_canary_that_ended_while_we_looked_is_nobody_elses() -> None:
    state = replace(serving().loop.state, canary=Canary(ended=99.0))
    health = {"requests_running": 1}
    look = events.Done(events.Look(state.epoch), {"model": "GLM", "health": health}, seconds=2.0)
    assert absorb(state, events.Observation("t", (look,)), 100.0).api.others == 0
    assert absorb(state, events.Observation("t", (look,)), 102.0).api.others == 1


@pytest.mark.parametrize(("asking", "others"), [(True, 0), (False, 1)])
def test_a_look_does_not_count_our_own_canary(asking: bool, others: int) -> None:
    world = serving()
    state, later = world.loop.state, world.now + 30
    pending = frozenset({events.Ask(state.epoch, "GLM", 1)}) if asking else frozenset()
    look = events.Done(events.Look(state.epoch), {"model": "GLM", "health": {"requests_running": 1}})
    seen = absorb(replace(state, pending=pending), events.Observation("t", (look,)), later)
    assert seen.api.others == others


def test_a_server_that_answers_nothing_any_more_is_at_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    world = serving(hang_limit=301)
    world.api.health |= {"requests_running": 3}
    world.run(10)
    world.api.hangs = True
    monkeypatch.setattr(world.api, "look", silent)
    hung = world.now
    world.until("starting", limit=3600)
    assert world.now - hung < 380


def test_a_look_that_is_missed_while_a_prompt_is_read_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    world = serving()
    world.api.health |= {"requests_running": 2}
    world.api.hangs = True
    world.run(1000, tick=1)
    with monkeypatch.context() as once:
        once.setattr(world.api, "look", silent)
        world.run(8)
    assert world.run(300, tick=1)["state"] == "serving"
    assert world.calls == [[], []]


def test_arriving_requests_are_no_sign_of_life() -> None:
    world = serving()
    world.api.hangs = True
    world.api.health["requests_total"] = 0
    for _ in range(100):
        world.run(10, tick=1)
        world.api.health["requests_total"] += 1
        if world.shown[-1]["state"] != "serving":
            break
    assert "counters stand still" in world.shown[-1]["last_error"]


def test_late_answer_to_the_pair_before_is_old_news() -> None:
    world = serving()
    world.api.hangs = True
    world.run(65)
    old = world.parked[0]
    world.api.hangs = False
    world.ranks[1].die()
    world.run(5)
    world.until("serving")
    for _ in range(3):
        world.inbox.put(events.Done(old, error="connection reset"))
        world.run(1)
    assert world.run(5)["state"] == "serving"
    assert len(world.shown[-1]["restarts"]) == 1


def test_a03_full_server_is_alive() -> None:
    world = serving()
    world.api.replies = [Reply(429, "full"), Reply(503, "full"), Reply(429, "full")]
    assert world.run(300, tick=1)["state"] == "serving"
    assert world.calls == [[], []]


def test_canary_that_collapses_once_is_asked_again_twice_is_a_restart() -> None:
    world = serving()
    world.api.replies = [COLLAPSED]
    world.run(70)
    assert world.shown[-1]["state"] == "serving"
    assert world.calls == [[], []]
    world.api.replies = [COLLAPSED, COLLAPSED]
    world.run(70)
    document = world.until("serving")
    assert "collapsed output" in document["last_error"]
    assert len(document["restarts"]) == 1


def refused(world: World) -> State:
    """The head has just refused the second canary in a row; all ranks were looked at before."""
    canary = Canary(ended=world.now, bad=2, detail="/v1/chat/completions: Connection refused")
    return replace(world.loop.state, canary=canary)


def looked(state: State, now: float, seconds: float = 0.1, **seen: Any) -> tuple[State, str]:
    """Take in a look at each rank that took so long; returns the state after it, and why the run ended."""
    found: dict[str, Any] = {
        "unit": "active",
        "exit_code": None,
        "gpu_gib": None,
        "memory_gib": None,
        "log": [],
        "dark": [],
        "starved": None,
        "warnings": [],
    }
    looks = []
    for view in state.ranks:
        container = {"id": view.container, "running": True}
        value = {**found, "container": container, **(seen if view.rank == 1 else {})}
        looks.append(events.Done(events.Probe(state.epoch, view.rank), value, seconds=seconds))
    after, _ = serve(absorb(state, events.Observation("t", tuple(looks)), now), now)
    return after, after.failure


def test_o01_a_rank_that_died_is_the_reason_and_not_the_canary_that_it_made_fail() -> None:
    world = serving()
    state, now = refused(world), world.now
    assert serve(state, now)[0].phase == Phase.SERVE
    # This look began before the canary ended: the rank may have died since.
    state, reason = looked(state, now + 0.5, seconds=2.0)
    assert (state.phase, reason) == (Phase.SERVE, "")
    # Its container is gone already, its unit is not yet.
    state, reason = looked(state, now + 1, container=None)
    assert (state.phase, reason) == (Phase.SERVE, "")
    assert looked(state, now + 3, unit="failed", exit_code=137)[1] == "rank 1 exited (code 137)"


def test_a_canary_that_fails_while_all_ranks_run_is_the_reason() -> None:
    world = serving()
    assert looked(refused(world), world.now + 0.5)[1].startswith("canary: /v1/chat/completions: Connection")


def test_a_canary_does_not_wait_for_ever_for_a_rank_that_cannot_be_seen() -> None:
    world = serving()
    state, now = refused(world), world.now
    assert serve(state, now + 5)[0].phase == Phase.SERVE
    assert serve(state, now + 7)[0].failure.startswith("canary: ")


def test_o02_ranks_out_of_step_are_restarted() -> None:
    world = serving()
    text = "the two ranks are out of step after an error; restart both"
    world.api.replies = [Reply(500, text), Reply(500, text)]
    world.run(70)
    assert text in world.until("serving")["last_error"]


def test_adopts_a_running_pair_without_touching_it() -> None:
    world = serving()
    old = world.loop.state
    world.supervise()
    document = world.until("serving")
    world.run(100)
    assert world.states()[-2:] == ["starting", "serving"]
    assert world.calls == [["report"], ["report"]]
    assert document["digest"] == old.digest
    assert document["effective"]["rails"] == 2


def test_an_adopted_pair_shows_the_rails_that_it_was_started_with() -> None:
    world = serving()
    world.config = replace(world.config, rails=1)
    world.ranks[0].devices = []
    world.supervise()
    document = world.until("serving")
    assert document["effective"]["rails"] == 2
    assert [rail["worker"]["hca"] for rail in document["rails"]] == ["rocep1s0f0", "roceP2p1s0f0"]
    assert [rail["worker"]["mtu"] for rail in document["rails"]] == [9000, 9000]


def test_an_adopted_pair_whose_start_is_forgotten_is_paired_as_the_settings_say() -> None:
    world = serving()
    members = tuple(replace(one, nccl_ib_hca=hca) for one, hca in zip(
        world.config.members, ("=rocep1s0f1", "=rocep1s0f0"), strict=True))  # fmt: skip
    world.config = replace(world.config, members=members)
    for rank in world.ranks:
        rank.links.clear()
    world.supervise()
    assert world.until("serving")["effective"]["rails"] == 1


def test_a_pair_that_is_found_with_a_dead_api_is_started_again() -> None:
    world = serving(wait_timeout=100)
    world.api.load_time = 10000
    world.supervise()
    world.run(110)
    world.api.load_time = 20
    document = world.until("serving")
    assert document["last_error"].startswith("not ready after 100 s")
    assert [calls.count("start") for calls in world.calls] == [1, 1]


@pytest.mark.parametrize("rank", [0, 1])
def test_o01_rank_that_was_restarted_while_no_supervisor_watched_is_not_adopted(
    tmp_path: Any, rank: int
) -> None:
    world = serving()
    path = tmp_path / "state.json"
    statefile.write(path, statefile.document(world.loop.state, world.now))
    world.ranks[rank].run()
    world.supervise(statefile.restore(fresh(world.config, world.now, "t"), path))
    world.until("loading")
    assert world.heard(f"rank {rank} was replaced by another container: stopping both, then starting both")
    assert [calls.count("start") for calls in world.calls] == [1, 1]
    world.until("serving")


def test_o01_rank_that_was_replaced_before_the_supervisor_died_is_not_adopted(tmp_path: Any) -> None:
    world = serving()
    path = tmp_path / "state.json"
    world.ranks[1].run()
    while (document := statefile.document(world.loop.state, world.now))["ranks"][1]["container"] == "c1":
        world.run(0.25)
    assert document["ranks"][1]["container"] == "c3"
    statefile.write(path, document)
    world.supervise(statefile.restore(fresh(world.config, world.now, "t"), path))
    world.until("loading")
    assert world.heard("rank 1 was replaced by another container: stopping both, then starting both")


def test_the_state_file_of_an_older_release_names_the_containers_too(tmp_path: Any) -> None:
    world = serving()
    path = tmp_path / "state.json"
    document = statefile.document(world.loop.state, world.now)
    for rank in document["ranks"]:
        del rank["launched"]
    statefile.write(path, document)
    restored = statefile.restore(fresh(world.config, world.now, "t"), path)
    assert [view.launched for view in restored.ranks] == ["c2", "c1"]


def test_adopts_a_pair_that_is_still_loading() -> None:
    world = World()
    world.api.load_time = 100
    world.until("loading")
    world.run(10)
    world.supervise()
    world.until("serving")
    assert [calls.count("start") for calls in world.calls] == [1, 1]
    assert world.states()[-4:] == ["starting", "loading", "smoke", "serving"]


def test_adopted_pair_is_serving_only_after_a_reply() -> None:
    world = serving()
    world.api.hangs = True
    world.supervise()
    assert world.run(60)["state"] == "starting"
    assert "found running, waiting for a reply" in world.shown[-1]["detail"]
    assert world.calls == [["report"], ["report"]]


def test_adopted_pair_that_is_dead_is_restarted_after_the_hang_limit() -> None:
    world = serving(hang_limit=100)
    world.api.hangs = True
    world.supervise()
    world.run(105)
    world.api.hangs = False
    assert len(world.until("serving")["restarts"]) == 1


@pytest.mark.parametrize(
    ("running", "text"),
    [
        ([0], "only rank 0 is running: stopping it, then starting both"),
        ([1], "only rank 1 is running: stopping it, then starting both"),
    ],
)
def test_l01_half_a_pair_is_stopped_and_started_whole(running: list[int], text: str) -> None:
    world = World()
    for rank in running:
        world.ranks[rank].run()
    world.until("serving")
    assert world.heard(text)
    assert [calls[:2] for calls in world.calls] == [["report", "kill"], ["report", "kill"]]


def test_k09_pair_with_another_configuration_is_replaced() -> None:
    world = World()
    for rank in world.ranks:
        rank.run("sha256:older")
    world.until("serving")
    assert world.heard("the ranks that run have another configuration")


def test_k09_supervisor_that_comes_back_keeps_an_older_pair_and_says_so() -> None:
    world = World()
    for rank in world.ranks:
        rank.run("sha256:older")
    older = digest(["sha256:older", "sha256:older"])
    state = fresh(world.config, world.now, "t")
    world.supervise(replace(state, known_digests=state.known_digests | {older}))
    document = world.until("serving")
    assert document["digest"] == older
    assert "an older configuration is served" in document["warnings"][0]
    assert world.calls == [["report"], ["report"]]


def phase_loading(world: World) -> None:
    world.api.load_time = 3600
    world.until("loading")


def phase_waiting(world: World) -> None:
    world.ranks[1].reachable = False
    world.run(5)
    world.ranks[1].reachable = True


def phase_down(world: World) -> None:
    world.api.replies = [COLLAPSED]
    world.until("down")


def phase_serving(world: World) -> None:
    world.until("serving")


def phase_restarting(world: World) -> None:
    world.until("serving")
    world.ranks[0].die()
    while not world.ranks[1].calls.count("stop"):
        world.run(0.25)


def last(calls: list[str], verb: str) -> int:
    return len(calls) - 1 - calls[::-1].index(verb)


@pytest.mark.parametrize(
    "prepare",
    [phase_waiting, phase_loading, phase_serving, phase_restarting, phase_down],
    ids=lambda f: f.__name__,
)
def test_sigterm_stops_all_ranks_and_goes(prepare: Any) -> None:
    world = World()
    prepare(world)
    world.terminate()
    world.run(30)
    assert world.over
    assert world.shown[-1]["state"] == "down"
    assert world.shown[-1]["detail"] == "stopped"
    assert world.shown[-1]["restarts"] == []
    assert [rank.unit for rank in world.ranks] == ["inactive", "inactive"]
    for rank in world.ranks:
        assert set(rank.calls[last(rank.calls, "stop") + 1 :]) == {"report"}


def test_sigterm_with_the_worker_away_says_so_and_goes() -> None:
    world = serving()
    world.ranks[1].reachable = False
    world.terminate()
    world.run(5)
    assert world.over
    assert world.ranks[0].unit == "inactive"
    assert world.heard("rank 1 was not stopped: unreachable by ssh")


def test_sigterm_waits_for_a_start_that_is_under_way() -> None:
    world = World()
    held: list[Any] = []
    submit = world.loop.submit
    world.loop.submit = lambda action: (
        held.append(action) if type(action).__name__ == "Start" else submit(action)
    )
    world.run(5)
    assert len(held) == 1
    world.terminate()
    world.run(5)
    assert not world.over
    assert "stop" not in world.ranks[1].calls
    submit(held[0])
    world.run(5)
    assert world.over
    assert world.ranks[1].calls[-3:] == ["start", "stop", "report"]


def test_stopped_is_said_when_the_memory_is_back() -> None:
    world = serving()
    world.ranks[1].available_gib = 24.0
    world.terminate()
    document = world.run(20)
    assert not world.over
    assert document["state"] == "stopping"
    assert document["detail"].startswith("waiting for memory to come back: rank 1 has 24 of 110 GiB")
    world.ranks[1].available_gib = 108.0
    document = world.run(5)
    assert world.over
    assert (document["state"], document["detail"]) == ("down", "stopped")


def test_a_supervisor_that_adopted_the_pair_knows_how_much_memory_is_to_come_back(tmp_path: Any) -> None:
    world = serving()
    path = tmp_path / "state.json"
    statefile.write(path, world.shown[-1])
    world.supervise(statefile.restore(fresh(world.config, world.now, "t"), path))
    world.until("serving")
    world.ranks[1].available_gib = 24.0
    world.terminate()
    assert world.run(20)["detail"].startswith("waiting for memory to come back: rank 1 has 24 of 110 GiB")


def test_stop_does_not_wait_for_memory_for_ever_and_says_so() -> None:
    world = serving()
    world.ranks[1].available_gib = 24.0
    world.terminate()
    document = world.run(70)
    assert world.over
    assert document["detail"] == (
        "stopped; memory did not come back within 60 s: rank 1 has 24 of 110 GiB of memory available"
    )
    assert world.heard("memory did not come back within 60 s")


def test_a_node_that_falls_silent_does_not_hide_that_its_memory_is_missing() -> None:
    world = serving()
    world.ranks[1].available_gib = 24.0
    world.terminate()
    world.run(20)
    submit = world.loop.submit
    world.loop.submit = lambda action: None if isinstance(action, events.Report) else submit(action)
    assert world.run(50)["detail"].startswith("stopped; memory did not come back within 60 s: rank 1 has 24")


def test_stop_order_of_an_engine_that_wants_its_head_first() -> None:
    world = serving(stop_order="head_first")
    submit, order = world.loop.submit, []

    def noting(action: events.Action) -> None:
        if isinstance(action, events.Stop):
            order.append((action.rank, world.ranks[0].unit))
        submit(action)

    world.loop.submit = noting
    world.terminate()
    world.run(5)
    assert order == [(0, "active"), (1, "inactive")]


def test_drain_waits_for_running_requests_but_not_for_ever() -> None:
    world = serving(drain_timeout=30)
    world.api.health["requests_running"] = 2
    world.terminate()
    assert world.run(10)["state"] == "stopping"
    assert world.shown[-1]["detail"] == "waiting for 2 requests to end before the stop, at most 20 s"
    assert world.calls == [[], []]
    world.api.health["requests_running"] = 0
    world.run(3)
    assert world.over
    assert world.shown[-1]["cut"] == 0


@pytest.mark.parametrize(("drain", "waits"), [(0, 0), (30, 30)])
def test_a_stop_says_how_many_requests_it_cuts_off(drain: int, waits: int) -> None:
    world = serving(drain_timeout=drain)
    world.api.health["requests_running"] = 2
    world.terminate()
    began = world.now
    while not world.calls[0]:
        world.run(0.25)
    assert waits <= world.now - began < waits + 2
    assert world.heard("stopping all ranks, 2 requests cut off")
    world.run(3)
    assert world.shown[-1]["cut"] == 2


def test_a_server_that_died_with_its_requests_does_not_hold_up_a_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = serving(drain_timeout=600)
    world.api.health["requests_running"] = 2
    world.run(10)
    monkeypatch.setattr(world.api, "look", silent)
    world.terminate()
    world.run(20)
    assert world.over
    assert world.shown[-1]["cut"] == 0
    assert not world.heard("cut off")


def test_a_look_that_is_missed_does_not_end_a_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    world = serving(drain_timeout=600)
    world.api.health["requests_running"] = 2
    world.terminate()
    world.run(10)
    with monkeypatch.context() as once:
        once.setattr(world.api, "look", silent)
        world.run(1.5)
    assert world.run(30)["state"] == "stopping"
    assert world.calls == [[], []]


def test_the_canary_is_none_of_the_requests_that_a_stop_waits_for() -> None:
    world = serving(drain_timeout=300)
    world.api.hangs = True
    world.run(70)
    world.api.health["requests_running"] = 1
    world.terminate()
    world.run(3)
    assert world.over
    assert world.shown[-1]["cut"] == 0


def test_an_api_that_gives_no_answer_does_not_hold_up_a_stop() -> None:
    world = serving(drain_timeout=0)
    submit = world.loop.submit
    world.loop.submit = lambda action: None if isinstance(action, events.Look) else submit(action)
    world.terminate()
    world.run(10)
    assert world.over


def test_a_clock_that_is_stepped_changes_nothing() -> None:
    world = serving()
    world.loop.wall = lambda: "1970-01-01T00:00:00+00:00"
    assert world.run(200, tick=1)["state"] == "serving"
    assert world.calls == [[], []]
    for year in range(2030, 2034):
        world.loop.wall = partial(str, f"{year}-01-01T00:00:00+00:00")
        world.ranks[0].die(1)
        world.run(5)
        document = world.until("serving", "down")
    assert document["detail"].startswith("gave up after 3 restarts")
    assert document["restarts"] == [f"{year}-01-01T00:00:00+00:00" for year in range(2030, 2033)]


def test_restarts_survive_the_supervisor(tmp_path: Any) -> None:
    world = serving()
    world.ranks[0].die()
    world.run(5)
    world.until("serving")
    path = tmp_path / "state.json"
    statefile.write(path, statefile.document(world.loop.state, world.now))
    restored: State = statefile.restore(fresh(world.config, world.now, "t"), path)
    assert restored.restarts == world.loop.state.restarts
    assert [end["hca"] for end in restored.link.of_rank(1)] == ["rocep1s0f0", "roceP2p1s0f0"]
    world.supervise(restored)
    assert len(world.until("serving")["restarts"]) == 1
