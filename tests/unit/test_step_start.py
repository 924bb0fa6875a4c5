"""The supervisor starts a pair: order, rails, refusals, retries. Stories with a fake pair and clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import fake_pair
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.client import ClientError
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.nodes import NodeError
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.smoke import Reply
from fake_world import PAIR, Start, World

NCCL = Start(dies=5, log=("loading", "RuntimeError: NCCL error 2: unhandled system error"))
REFUSAL = (
    "CUDA startup memory budget cannot fit requested context {}; "
    "estimated largest fitting prompt-plus-reply window: {} tokens across the ranks."
)


def refused(window: int, asked: int = 1048576) -> Start:
    return Start(dies=3, log=("loading", REFUSAL.format(asked, window)))


def test_clean_start_from_look_to_serving() -> None:
    world = World()
    document = world.until("serving")
    assert world.states() == ["starting", "loading", "smoke", "serving"]
    assert world.calls == [["report", "reach", "start"], ["report", "reach", "start"]]
    assert document["effective"]["rails"] == 2
    assert document["last_canary"]["ok"] is True
    assert document["restarts"] == []
    assert world.run(1)["effective"]["window"] == 1048576
    assert world.run(1)["detail"] == "window 1048576, 2 rails, canary 0.0 s"
    assert world.heard("2 rails: rocep1s0f1,roceP2p1s0f1 <-> rocep1s0f0,roceP2p1s0f0")


def test_l13_worker_starts_first_and_each_is_told_its_own_rails() -> None:
    world = World()
    world.until("loading")
    worker, head = world.ranks[1].links[0], world.ranks[0].links[0]
    assert world.ranks[1].container and world.ranks[0].container
    assert world.ranks[1].container["id"] < world.ranks[0].container["id"]
    assert worker["master"] == head["master"] == "198.51.100.1"
    assert [rail["hca"] for rail in worker["rails"]] == ["rocep1s0f0", "roceP2p1s0f0"]
    assert (worker["append"], worker["env"]) == ([], {})


def test_l03_window_that_does_not_fit_is_refitted_once() -> None:
    world = World()
    world.ranks[0].script = [refused(786432)]
    world.ranks[1].script = [refused(786432)]
    document = world.until("serving")
    assert [link["append"] for link in world.ranks[0].links] == [[], ["--context", "786432"]]
    assert world.ranks[1].links[1]["append"] == ["--context", "786432"]
    assert "this start holds a 786432-token window, not 1048576" in document["warnings"]
    assert document["restarts"] == []


@pytest.mark.parametrize(
    ("script", "starts", "reason"),
    [
        pytest.param(
            [refused(786432), refused(524288, 786432)],
            2,
            "refitted to 786432 tokens does not fit either",
            id="twice",
        ),
        pytest.param([refused(0)], 1, "no window fits into the memory of this start", id="zero"),
        pytest.param(
            [Start(dies=1, code=2, log=("unrecognized arguments: --contxt",))],
            1,
            "unrecognized arguments",
            id="usage",
        ),
        pytest.param(
            [Start(dies=4, log=("ranks have different settings",))], 1, "run serve.yml", id="settings"
        ),
    ],
)
def test_o12_refusals_are_not_tried_again(script: list[Start], starts: int, reason: str) -> None:
    world = World()
    world.ranks[0].script = script
    document = world.until("down")
    assert len(world.ranks[0].links) == starts
    assert reason in document["detail"]
    assert document["detail"] == document["last_error"]
    assert world.ranks[0].container is None and world.ranks[1].container is None
    before = [list(calls) for calls in world.calls]
    world.run(4000)
    assert world.calls == before


NO_DISK = "docker: Error response from daemon: mkdir /var/lib/docker/overlay2/x: no space left on device"


@pytest.mark.parametrize(
    "start", [Start(error=f"ended at once (code 125): {NO_DISK}"), Start(dies=1, log=(NO_DISK,))]
)
def test_o12_a_full_disk_is_not_tried_again(start: Start) -> None:
    world = World()
    world.ranks[1].script = [start]
    document = world.until("down")
    assert document["detail"].endswith(
        f"{NO_DISK}; make room on that node, then systemctl restart twinserve on the head"
    )
    assert document["detail"].startswith("rank 1 ")
    assert (document["restarts"], len(world.ranks[1].links)) == ([], 1)


@pytest.mark.parametrize(("code", "line"), [(1, NO_DISK), (2, "unrecognized arguments: --contxt")])
def test_o12_what_a_rank_said_at_an_earlier_start_is_not_held_against_this_one(code: int, line: str) -> None:
    world = World()
    # The worker is started first: the head's log is still the one of a start before.
    world.ranks[0].log, world.ranks[0].exit_code = [line], code
    world.ranks[1].script = [Start(error="enp1s0f0np0 lost 198.51.100.2; run the fabric play")]
    document = world.until("serving", "down")
    assert (document["state"], len(document["restarts"])) == ("serving", 1)
    assert line not in document["last_error"]
    assert world.heard(f"rank 0: {line}"), "people still see it"


def test_f22_a_line_of_an_earlier_start_is_no_alarm() -> None:
    world = listening()
    world.ranks[0].log = [TCP]
    world.ranks[1].script = [Start(error="enp1s0f0np0 lost 198.51.100.2; run the fabric play")]
    assert world.until("serving", "down")["state"] == "serving"


def test_l12_first_nccl_failure_is_tried_unchanged_then_without_split() -> None:
    world = World()
    world.ranks[1].script = [NCCL, NCCL]
    document = world.until("serving")
    assert [link["env"] for link in world.ranks[0].links] == [
        {},
        {},
        {"TF_GLM_HC_SPLIT": "0", "TF_GLM_PREFILL_OVERLAP": "0"},
    ]
    assert world.ranks[0].links[2]["env"] == world.ranks[1].links[2]["env"]
    assert document["restarts"] == []
    assert any("TF_GLM_HC_SPLIT=0" in warning for warning in document["warnings"])


def test_l12_third_nccl_failure_counts_as_a_restart() -> None:
    world = World()
    world.ranks[1].script = [NCCL, NCCL, NCCL]
    document = world.until("serving")
    assert len(document["restarts"]) == 1
    assert "set split: false" in document["last_error"]
    assert world.ranks[0].links[3]["env"] == {}


def test_f21_a_kernel_that_cannot_register_memory_is_not_tried_again() -> None:
    line = "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"
    told = {"pattern": "ibv_reg_mr_iova2", "cure": "boot with kho=off or the 6.17 kernel", "refusal": True}
    world = World(patterns=PAIR["patterns"] | {"failures": [*PAIR["patterns"]["failures"], told]})
    world.ranks[1].script = [Start(dies=5, log=(line, "RuntimeError: NCCL error 2: unhandled system error"))]
    document = world.until("down")
    assert len(world.ranks[0].links) == 1
    assert f"{line}; boot with kho=off or the 6.17 kernel" in document["detail"]
    assert document["restarts"] == []


TCP = "spark-b:1:7 [0] NCCL INFO NET/Socket : Using [0]enp1s0f0np0:198.51.100.2<0>"


def listening() -> World:
    """A pair whose ranks are listened to while they load."""
    alarm = {
        "pattern": "NET/Socket",
        "says": "rank {rank} uses TCP, not RoCE",
        "cure": "check /dev/infiniband",
    }
    return World(patterns=PAIR["patterns"] | {"alarms": [alarm]})


def test_f22_a_rank_that_went_over_tcp_ends_the_start_while_it_loads() -> None:
    world = listening()
    world.ranks[1].script = [Start(log=(TCP, "loading"))]
    document = world.until("down")
    assert document["detail"] == f"rank 1 uses TCP, not RoCE: {TCP}; check /dev/infiniband"
    assert world.states()[:2] == ["starting", "loading"] and "smoke" not in world.states()
    assert [len(rank.links) for rank in world.ranks] == [1, 1], "no second start"
    assert [rank.container for rank in world.ranks] == [None, None]
    assert document["restarts"] == []


def test_f22_a_load_that_is_over_before_the_next_look_is_not_served_either() -> None:
    world = listening()
    world.api.load_time = 5.0
    world.until("loading")
    world.run(2)
    world.ranks[1].log.insert(0, TCP)
    assert world.until("down")["detail"].startswith("rank 1 uses TCP, not RoCE")
    assert "smoke" in world.states() and "serving" not in world.states()


def test_f22_a_rank_that_cannot_be_heard_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def mute(_stdin: str) -> str:
        raise NodeError("did not answer within 20 s")

    world = listening()
    world.ranks[1].script = [Start(log=(TCP,))]
    monkeypatch.setattr(world.ranks[1], "_logs", mute)
    world.until("smoke")
    assert world.run(30)["state"] == "smoke"
    monkeypatch.undo()
    assert world.until("down")["detail"].startswith("rank 1 uses TCP, not RoCE")


def test_f22_a_rank_that_is_never_heard_does_not_keep_the_pair_from_serving(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def mute(_stdin: str) -> str:
        raise NodeError("did not answer within 20 s")

    world = listening()
    monkeypatch.setattr(world.ranks[1], "_logs", mute)
    world.until("serving")
    text = (
        "what rank 1 (spark-b) runs over is not known: its log could not be read (did not answer within 20 s)"
    )
    assert world.said.count(text) == 1 and not world.heard("rank 0 (spark-a) runs over")


def test_f22_a_rank_that_died_of_it_is_told_so_too() -> None:
    world = listening()
    world.ranks[0].script = [Start(dies=0, log=(TCP, "RuntimeError: NCCL error 2: unhandled system error"))]
    world.ranks[1].script = [Start(log=(TCP,))]
    document = world.until("down")
    assert document["detail"].startswith("rank 0 uses TCP, not RoCE; rank 1 uses TCP, not RoCE: ")
    assert len(world.ranks[0].links) == 1


def test_f22_a_healthy_line_disturbs_nothing_and_without_alarms_no_log_is_fetched() -> None:
    world = listening()
    world.ranks[1].script = [
        Start(log=("NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [RO]; OOB enp1s0f0np0",))
    ]
    world.until("serving")
    assert "logs" in world.ranks[1].calls
    quiet = World()
    quiet.until("serving")
    assert "logs" not in quiet.ranks[1].calls


def test_l02_o08_rank_that_dies_while_loading_ends_the_attempt_for_both() -> None:
    world = World(restart_limit=0)
    world.api.load_time = 3600
    world.ranks[1].script = [Start(dies=20, log=tuple(f"line {number}" for number in range(40)))]
    began = world.now
    document = world.until("down")
    assert world.now - began < 30
    assert "rank 1 exited (code 1) before the server was ready" in document["detail"]
    lines = [line for line in world.said if line.startswith("rank 1: ")]
    assert (len(lines), lines[0], lines[-1]) == (25, "rank 1: line 15", "rank 1: line 39")
    assert world.heard("rank 0: loading")
    assert world.ranks[0].calls[-2:] == ["logs", "kill"]


def test_l02_one_missed_look_is_no_death_three_are() -> None:
    world = World(restart_limit=0)
    world.api.load_time = 3600
    world.until("loading")
    world.run(5)
    world.ranks[1].reachable = False
    world.run(1.5)
    world.ranks[1].reachable = True
    assert world.run(10)["state"] == "loading"
    world.ranks[1].reachable = False
    assert (
        "could not be seen 3 times (unreachable by ssh (exit 255)" in world.until("down", limit=30)["detail"]
    )


def test_start_that_the_agent_refuses_counts_and_is_tried_again() -> None:
    world = World()
    world.ranks[1].script = [Start(error="enp1s0f0np0 lost 198.51.100.2; run the fabric play")]
    document = world.until("serving")
    assert len(document["restarts"]) == 1
    assert "rank 1 (spark-b) did not start: enp1s0f0np0 lost 198.51.100.2" in document["last_error"]
    assert world.ranks[0].calls.count("start") == 1


def test_o12_engine_that_crashes_at_once_ends_down_with_the_last_error() -> None:
    world = World()
    world.ranks[0].script = [Start(dies=1, log=("boom",))] * 10
    document = world.until("down")
    assert document["detail"].startswith("gave up after 3 restarts; last error: rank 0 exited (code 1)")
    assert document["detail"].endswith("boom")
    assert len(world.ranks[0].links) == 4
    assert len(document["restarts"]) == 3


def test_l14_limit_counts_from_the_last_sign_of_progress() -> None:
    world = World(wait_timeout=100)
    world.api.load_time = 1000
    for _ in range(4):
        world.ranks[0].log.append(f"compiling {world.now}")
        assert world.run(45)["state"] != "down"
    world.ranks[1].gpu_gib = 10.0
    assert world.run(90, tick=1)["state"] == "loading"
    waited = world.now
    document = world.until("down")
    assert world.now - waited < 15
    assert "without progress; the ranks are still running" in document["detail"]
    assert world.ranks[0].unit == world.ranks[1].unit == "active"


def test_l14_progress_without_an_end_has_a_cap() -> None:
    world = World(wait_timeout=100)
    world.api.load_time = 5000
    while world.shown[-1:] == [] or world.shown[-1]["state"] != "down":
        world.ranks[0].log.append(f"{world.now}")
        world.run(10, tick=1)
        assert world.now < 2000
    assert "the ranks are still running" in world.shown[-1]["detail"]


def test_f09_second_rail_that_fails_its_ping_is_left_out_on_both() -> None:
    world = World()
    world.ranks[1].dead_targets = {"203.0.113.1"}
    document = world.until("serving")
    assert document["effective"]["rails"] == 1
    assert [len(rank.links[0]["rails"]) for rank in world.ranks] == [1, 1]
    assert document["warnings"][0].endswith("does not reach the peer: not used")
    assert world.heard("rail 1: worker to 203.0.113.1, none")


@pytest.mark.parametrize(("rails", "dead"), [("auto", "198.51.100.2"), (2, "203.0.113.2")])
def test_link_that_must_work_and_does_not_is_waited_for_and_said(rails: Any, dead: str) -> None:
    world = World(rails=rails)
    world.ranks[0].dead_targets = {dead}
    assert world.run(30)["state"] == "starting"
    assert "does not reach the peer" in world.shown[-1]["detail"]
    assert world.until("down", limit=60)["detail"].startswith("waiting: ")
    assert [rank.links for rank in world.ranks] == [[], []]
    world.ranks[0].dead_targets = set()
    assert world.until("serving")["effective"]["rails"] == 2
    assert sum("waiting: " in line for line in world.said) == 1


def expected(*hcas: str) -> list[dict[str, Any]]:
    return [{"netdev": "n", "hca": hca, "address": "", "gid_index": None} for hca in hcas]


@pytest.mark.parametrize(("late", "rails"), [(5, 2), (60, 1)])
def test_second_rail_that_comes_up_late_is_waited_for_a_little(late: float, rails: int) -> None:
    world = World()
    world.ranks[0].expected = expected("rocep1s0f1", "roceP2p1s0f1")
    world.ranks[1].expected = expected("rocep1s0f0", "roceP2p1s0f0")
    whole = world.ranks[1].devices
    world.ranks[1].devices = fake_pair.worker(roceP2p1s0f0={"addresses": ()})
    world.run(late)
    world.ranks[1].devices = whole
    assert world.until("serving")["effective"]["rails"] == rails


def test_f05_no_shared_subnet_is_waited_for() -> None:
    world = World()
    rail, world.ranks[1].devices = (
        world.ranks[1].devices,
        [fake_pair.down("rocep1s0f0", "enp1s0f0np0", "0000:01:00.0")],
    )
    assert "no CX7 subnet shared by head and worker" in world.run(10)["detail"]
    world.ranks[1].devices = rail
    world.until("serving")


def test_a_port_that_another_server_has_is_waited_for_and_said() -> None:
    world = World()
    world.ranks[0].hindrances = ["port 8888 is taken by llama-server (pid 4711)"]
    document = world.run(70)
    assert document["state"] == "down"
    assert document["detail"] == "waiting: head spark-a: port 8888 is taken by llama-server (pid 4711)"
    assert [calls.count("start") for calls in world.calls] == [0, 0]
    world.ranks[0].hindrances = []
    assert world.until("serving")["restarts"] == []


def test_a_start_that_waits_for_another_server_says_so_in_the_end() -> None:
    world = World(wait_timeout=60)
    look, text = world.api.look, "/v1/models: another server answers on port 8888"

    def foreign(served_name: str) -> dict[str, Any]:
        look(served_name)
        raise ClientError(text)

    world.api.look = foreign  # type: ignore[method-assign]
    assert world.until("down")["detail"].endswith(f"; {text}")


def test_f02_each_start_looks_up_the_index_again() -> None:
    world = World()
    world.until("serving")
    world.ranks[1].devices = fake_pair.worker(4, 4)
    world.ranks[1].die()
    world.run(5)
    world.until("serving")
    assert [link["rails"][0]["gid_index"] for link in world.ranks[1].links] == [3, 4]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(
            {"version": "2"},
            "worker spark-b has runtime 2, the head has 1: run the serve playbook",
            id="version",
        ),
        pytest.param({"plan": {}}, "worker spark-b has no rank plan", id="no-plan"),
        pytest.param(
            {"plan": {"digest": "sha256:other"}},
            "do not belong together: run the serve playbook",
            id="k09-plans",
        ),
    ],
)
def test_nodes_that_do_not_fit_together_are_refused(change: dict[str, Any], reason: str) -> None:
    world = World()
    for name, value in change.items():
        setattr(world.ranks[1], name, value)
    assert reason in world.until("down")["detail"]
    assert world.ranks[0].links == []


def test_worker_that_is_late_after_a_power_cut_is_waited_for() -> None:
    world = World()
    world.ranks[1].reachable = False
    assert (
        world.run(50)["detail"]
        == "waiting: worker spark-b unreachable by ssh (exit 255): Connection timed out"
    )
    assert world.run(600, tick=1)["state"] == "down"
    world.ranks[1].reachable = True
    assert world.until("serving")["restarts"] == []


def test_f24_configured_port_that_is_down_is_named() -> None:
    world = World(ranks=[
        {"rank": 0, "name": "spark-a", "address": None, "fabric_netdev": "enp1s0f0np0"},
        {"rank": 1, "name": "spark-b", "address": "192.0.2.12"},
    ])  # fmt: skip
    expected = "enp1s0f0np0 is down on the head; up RoCE ports: enp1s0f1np1, enP2p1s0f1np1"
    assert expected in world.run(5)["detail"]


@pytest.mark.parametrize(
    ("text", "state"),
    [("OK", "serving"), ("!!!!!!!!!!!!", "down"), ("the the the the the the", "down"), ("", "down")],
)
def test_l04_smoke_test_decides_whether_it_serves(text: str, state: str) -> None:
    world = World()
    world.api.replies = [Reply(200, text)]
    document = world.until("serving", "down")
    assert document["state"] == state
    if state == "down":
        assert document["detail"].startswith("smoke test: rank pair answers")
        assert world.ranks[0].container is None


def test_smoke_test_that_fails_otherwise_is_a_failed_start() -> None:
    world = World()
    world.api.replies = ["no answer within 180 s"]
    document = world.until("serving")
    assert len(document["restarts"]) == 1
    assert "smoke test: no answer within 180 s" in document["last_error"]


def test_f10_twins_in_one_subnet_are_proved_by_arp_from_port_to_port() -> None:
    world = World()
    for rank, (device, address) in enumerate((("roceP2p1s0f1", "101"), ("roceP2p1s0f0", "102"))):
        plain = f"198.51.100.{address}"
        for number, one in enumerate(world.ranks[rank].devices):
            if one.hca == device:
                one = replace(one, addresses=(f"{plain}/24",), gids=fake_pair.gids(plain), mac=f"twin{rank}")
            world.ranks[rank].devices[number] = replace(one, shares_subnet=bool(one.addresses))
    document = world.until("serving")
    assert document["effective"]["rails"] == 2
    twin = world.ranks[0].reached[-1][1]
    assert twin == {
        "netdev": "enP2p1s0f1np1",
        "target": "198.51.100.102",
        "mtu": 9000,
        "arp_from": "198.51.100.101",
        "mac": "twin1",
    }


def test_rails_in_subnets_of_their_own_are_proved_by_ping() -> None:
    world = World()
    world.until("serving")
    assert [(one["target"], one["arp_from"]) for one in world.ranks[0].reached[-1]] == [
        ("198.51.100.2", ""),
        ("203.0.113.2", ""),
    ]


@pytest.mark.parametrize("error", ["pcieport 0000:00:00.0: AER: Uncorrectable (Fatal) error", None])
def test_f23_a_device_that_a_pcie_error_took_keeps_the_pair_down(error: str | None) -> None:
    world = World()
    head = world.ranks[0]
    head.expected = [{"netdev": "enp1s0f1np1", "hca": "rocep1s0f1", "address": "198.51.100.1"}]
    head.devices, head.pcie_error = fake_pair.head()[1:], error
    if error is None:
        # The kernel log says nothing: the other rail serves, and what changed is told.
        assert world.until("serving")["effective"]["rails"] == 1
        assert world.heard("rank 0: RoCE device of enp1s0f1np1 is gone: look at rdma link")
        return
    world.run(120)
    assert world.shown[-1]["detail"] == (
        "waiting: head: RoCE device of enp1s0f1np1 is gone (PCIe error in the kernel log): "
        "power-cycle the node"
    )
    assert world.shown[-1]["state"] == "down"
    assert not any("start" in calls for calls in world.calls)
    head.devices, head.pcie_error = fake_pair.head(), None
    world.until("serving")
