"""The supervisor and a rail that comes back while the pair serves without it."""

from __future__ import annotations

from typing import Any

import fake_pair
from fake_world import World

BACK = (
    "roceP2p1s0f1 <-> roceP2p1s0f0 carries packets again, and is not in use: "
    "systemctl restart twinserve takes it in"
)


def short(**changes: Any) -> World:
    """A pair that serves with one rail of two."""
    world = World(**changes)
    world.ranks[1].devices = fake_pair.worker(roceP2p1s0f0={"operstate": "down", "carrier": False})
    world.until("serving")
    world.run(70, tick=1)
    return world


def test_a_rail_that_is_back_is_told_once_and_nothing_is_restarted() -> None:
    world = short()
    assert len(world.shown[-1]["warnings"]) == 1
    world.ranks[1].devices = fake_pair.worker()

    document = world.run(130, tick=1)

    assert BACK in document["warnings"]
    assert world.said.count(BACK) == 1
    assert [calls.count("start") for calls in world.calls] == [1, 1]


def test_a_rail_that_looks_well_and_carries_nothing_is_not_back() -> None:
    world = World()
    world.ranks[0].dead_targets = {"203.0.113.2"}
    world.until("serving")
    world.run(130, tick=1)
    assert not world.heard("carries packets again")
    world.ranks[0].dead_targets = set()
    assert BACK in world.run(70, tick=1)["warnings"]
    world.ranks[0].dead_targets = {"203.0.113.2"}
    assert BACK not in world.run(70, tick=1)["warnings"]


def test_a_node_that_cannot_be_asked_disturbs_nothing() -> None:
    world = short()
    world.ranks[1].reachable = False
    world.run(100, tick=1)
    world.ranks[1].devices = fake_pair.worker()
    world.ranks[1].reachable = True
    assert BACK in world.run(130, tick=1)["warnings"]


def test_a_pair_with_all_its_rails_asks_for_no_reports() -> None:
    world = World()
    world.until("serving")
    world.run(130, tick=1)
    assert [calls.count("report") for calls in world.calls] == [1, 1]


def pull(world: World) -> None:
    """Take the cable of the second rail out."""
    for rank, ports in enumerate((fake_pair.head, fake_pair.worker)):
        twin = ("roceP2p1s0f1", "roceP2p1s0f0")[rank]
        change: dict[str, Any] = {twin: {"operstate": "down", "carrier": False}}
        world.ranks[rank].devices = ports(**change)
        world.ranks[rank].dark = [("enP2p1s0f1np1", "enP2p1s0f0np0")[rank]]
        world.ranks[rank].expected = [{"netdev": "n", "hca": hca, "address": ""} for hca in ("a", "b")]


def test_a_pair_that_hangs_over_a_pulled_cable_is_started_over_the_other_rail() -> None:
    world = World()
    world.until("serving")
    world.run(5)
    pull(world)
    world.api.hangs = True
    pulled = world.now
    world.until("loading")
    assert world.now - pulled < 25, "what the second rail is waited for has passed already"
    world.api.hangs = False
    document = world.until("serving")
    assert document["effective"]["rails"] == 1
    assert (
        "enP2p1s0f1np1 of spark-a; enP2p1s0f0np0 of spark-b has no carrier and nothing has moved"
        in (document["last_error"])
    )


def test_rails_that_come_back_one_after_the_other_are_both_used() -> None:
    world = World()
    world.until("serving")
    world.run(5)
    dark: dict[str, Any] = {"operstate": "down", "carrier": False}
    for rank, ports in enumerate((fake_pair.head, fake_pair.worker)):
        both = ("rocep1s0f1", "roceP2p1s0f1") if rank == 0 else ("rocep1s0f0", "roceP2p1s0f0")
        changes: dict[str, Any] = dict.fromkeys(both, dark)
        world.ranks[rank].devices = ports(**changes)
        world.ranks[rank].dark = ["enp1s0f1np1"]
        world.ranks[rank].expected = [{"netdev": "n", "hca": hca, "address": ""} for hca in ("a", "b")]
    world.api.hangs = True
    world.until("starting")
    world.run(60)
    world.api.hangs = False

    pull(world)
    world.run(5)
    assert [calls.count("start") for calls in world.calls] == [1, 1], "the second rail may be on its way"
    world.ranks[0].devices, world.ranks[1].devices = fake_pair.head(), fake_pair.worker()

    assert world.until("serving")["effective"]["rails"] == 2


def test_a_pair_that_answers_although_a_cable_is_out_is_left_alone() -> None:
    world = World()
    world.until("serving")
    pull(world)
    world.run(120)
    assert [calls.count("start") for calls in world.calls] == [1, 1]


def test_a_prompt_that_is_being_read_is_given_the_engines_own_time() -> None:
    world = World()
    world.until("serving")
    world.run(5)
    pull(world)
    world.api.hangs = True
    world.api.health |= {"streams": {"prefilling": 1}, "requests_running": 2}
    assert world.run(300, tick=1)["state"] == "serving"
    world.until("loading", limit=60)
