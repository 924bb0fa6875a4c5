"""System B: no pair serves before both ranks' logs show RDMA on the devices that they were given."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.catalogue import merged
from ansible_collections.twinserve.pair.plugins.module_utils.render import pair_config
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.config import parse_config
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.nodes import NodeError
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.smoke import Reply
from fake_world import Start, World
from station_data import NODES, PRODUCT, RELEASE, config, plans, settings

PATTERNS = config()["patterns"]
MAIN = ("rocep1s0f1", "rocep1s0f0")
CHANNEL = "station:112:180 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA(PCI)"
NO_DEVICE = "station:112:180 [0] NCCL INFO NET/IB : No device found."
WARN = "station:71:90 [0] misc/ibvwrap.cc:301 NCCL WARN Call to ibv_query_ece failed with error 95"


def using(*devices: str) -> str:
    """The line in which NCCL names the devices that it opened."""
    named = " ".join(
        f"[{number}]{hca if ':' in hca else f'{hca}:1'}/RoCE" for number, hca in enumerate(devices)
    )
    return f"station:112:180 [0] NCCL INFO NET/IB : Using {named} [RO]; OOB enP1p3s0f0np0:198.51.100.1<0>"


def pair(*logs: tuple[str, ...], **changes: Any) -> World:
    """A pair with the product's patterns; each rank prints its log at once."""
    world = World(**{"patterns": PATTERNS, "rails": 1} | changes)
    for rank, log in zip(world.ranks, logs, strict=False):
        rank.script = [Start(log=log)]
    return world


def proved(rank: int) -> tuple[str, ...]:
    """What a rank prints that runs over RDMA."""
    return using(MAIN[rank]), CHANNEL


def test_f22_a_pair_serves_when_both_ranks_show_rdma_on_their_own_device() -> None:
    document = pair(proved(0), proved(1)).until("serving", "down")
    assert (document["state"], document["warnings"]) == ("serving", [])


@pytest.mark.parametrize("name", ["rocep1s0f0_dma", "rocep1s0f0", "rocep1s0f0_dma:1:0:1", "rocep1s0f0:1::1"])
def test_f22_a_device_counts_with_its_own_path_to_the_gpu_its_rail_and_without(name: str) -> None:
    assert pair(proved(0), (using(name), CHANNEL)).until("serving", "down")["state"] == "serving"


@pytest.mark.parametrize("way", ["NET/IB/0", "NET/IB/0(1)/GDRDMA", "NET/IBext_v10/0/GDRDMA(PCI)"])
def test_f22_a_channel_counts_through_nccls_own_transport_and_through_a_plugin(way: str) -> None:
    channel = CHANNEL.replace("NET/IB/0/GDRDMA(PCI)", way)
    assert pair(proved(0), (using(MAIN[1]), channel)).until("serving", "down")["state"] == "serving"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        pytest.param(
            (using("rocep1s0f1"), CHANNEL),
            f"rank 1 did not say that NCCL uses rocep1s0f0: {using('rocep1s0f1')}; run site.yml",
            id="another device",
        ),
        pytest.param(
            (using("rocep1s0f00"), CHANNEL),
            f"rank 1 did not say that NCCL uses rocep1s0f0: {using('rocep1s0f00')}; ",
            id="a longer name",
        ),
        pytest.param(
            (NO_DEVICE, "loading"),
            "rank 1 did not say that NCCL uses rocep1s0f0; rank 1 did not say that it sends or receives over "
            f"RDMA (NET/IB): {NO_DEVICE}; run site.yml",
            id="no device",
        ),
        pytest.param(
            (using("rocep1s0f0"),),
            "rank 1 did not say that it sends or receives over RDMA (NET/IB): nothing of the kind is in "
            "its log; run site.yml",
            id="no channel",
        ),
        pytest.param(
            ("loading",),
            "rank 1 did not say that NCCL uses rocep1s0f0; rank 1 did not say that it sends or receives over "
            "RDMA (NET/IB): nothing of the kind is in its log; ",
            id="silent",
        ),
    ],
)
def test_f22_a_rank_that_does_not_show_it_keeps_the_pair_down(log: tuple[str, ...], said: str) -> None:
    world = pair(proved(0), log)
    document = world.until("serving", "down")
    assert document["detail"].startswith(said)
    assert document["detail"].endswith("; the rank's log says more")
    assert (document["state"], document["restarts"]) == ("down", [])
    assert "smoke" in world.states() and "serving" not in world.states()
    assert [rank.container for rank in world.ranks] == [None, None]


def test_f22_with_two_rails_both_devices_are_asked_for() -> None:
    twins = (("rocep1s0f1", "roceP2p1s0f1"), ("rocep1s0f0", "roceP2p1s0f0"))
    both = [(using(*devices), CHANNEL) for devices in twins]
    assert pair(*both, rails=2).until("serving", "down")["state"] == "serving"
    document = pair(both[0], proved(1), rails=2).until("serving", "down")
    assert document["detail"].startswith("rank 1 did not say that NCCL uses roceP2p1s0f0: ")


def test_f22_what_was_heard_while_it_loaded_counts_when_newer_lines_have_pushed_it_out() -> None:
    world = pair(proved(0), proved(1))
    world.until("loading")
    world.run(2)
    for rank in world.ranks:
        rank.log = ["Capturing CUDA graphs"]
    assert world.until("serving", "down")["state"] == "serving"


def test_f22_a_proof_of_an_earlier_start_is_none_of_this_one() -> None:
    world = pair(proved(0), proved(1))
    world.ranks[0].script = [Start(log=proved(0)), Start(log=("loading",))]
    world.ranks[1].script = [Start(dies=15, log=proved(1)), Start(log=proved(1))]
    assert world.until("serving", "down")["detail"].startswith("rank 0 did not say that NCCL uses")


def test_f22_a_line_that_comes_after_the_first_reply_is_waited_for() -> None:
    world = pair(proved(0), ("loading",))
    world.until("smoke")
    world.run(15)
    assert world.shown[-1]["state"] == "smoke"
    world.ranks[1].log += proved(1)
    assert world.until("serving", "down")["state"] == "serving"


def test_f22_nonsense_is_told_before_what_was_not_said() -> None:
    world = pair(proved(0), ("loading",))
    world.api.replies = [Reply(200, ",,,,,,,,,,,,,,,,")]
    world.until("smoke")
    assert 'rank pair answers ",,,,' in world.run(5)["detail"]


def test_f22_a_log_that_cannot_be_read_is_no_proof_against_the_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    def mute(_stdin: str) -> str:
        raise NodeError("did not answer within 20 s")

    world = pair(proved(0), proved(1))
    monkeypatch.setattr(world.ranks[1], "_logs", mute)
    assert world.until("serving", "down")["state"] == "serving"
    assert world.heard("what rank 1 (spark-b) runs over is not known")


def test_f22_ranks_that_were_found_running_are_not_stopped_for_lines_that_are_forgotten() -> None:
    world = pair()
    world.api.load_time = 1500
    for rank in world.ranks:
        rank.run()
    assert world.until("loading")["state"] == "loading"
    world.run(5)
    world.api.load_time = 0
    assert world.until("serving", "down")["state"] == "serving"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (WARN, "NCCL warns"),
        (
            CHANNEL.replace("/GDRDMA(PCI)", "/Shared"),
            "NCCL goes through the host's memory, not straight into the GPU's (no GDRDMA)",
        ),
        (
            "NCCL INFO dlvsym failed on mlx5dv_get_data_direct_sysfs_path - libmlx5.so: undefined symbol",
            "the image's RDMA libraries do not know the card's own path to the GPU (Data Direct), "
            "which is faster",
        ),
    ],
)
def test_what_nccl_warns_of_is_shown_with_the_pair_and_ends_nothing(line: str, says: str) -> None:
    document = pair(proved(0), (*proved(1), line)).until("serving", "down")
    assert (document["state"], document["warnings"]) == ("serving", [f"rank 1 (spark-b): {says}: {line}"])


def test_what_nccl_warns_of_while_it_serves_is_shown_too() -> None:
    world = pair(proved(0), proved(1))
    world.until("serving")
    world.ranks[0].log.append(WARN)
    assert world.run(5)["warnings"] == [f"rank 0 (spark-a): NCCL warns: {WARN}"]
    world.ranks[0].log += ["(APIServer pid=1) INFO: 200 OK"] * 40
    assert len(world.run(5)["warnings"]) == 1
    world.ranks[1].die()
    world.until("starting")
    world.ranks[0].script, world.ranks[1].script = [Start(log=proved(0))], [Start(log=proved(1))]
    assert world.until("serving")["warnings"] == []


def test_where_nccl_was_told_to_be_silent_no_proof_is_asked_for() -> None:
    assert config(nccl_debug="WARN")["patterns"]["proofs"] == []
    assert len(PATTERNS["proofs"]) == 2


def test_a_release_without_nccl_asks_for_none() -> None:
    own = merged(PRODUCT.release(RELEASE), {"proofs": [], "alarms": [], "remarks": []})
    found = parse_config(pair_config(plans(), settings(), own, NODES))
    assert (found.proofs, found.listens) == ((), False)
    world = World(patterns=pair_config(plans(), settings(), own, NODES)["patterns"], rails=1)
    assert world.until("serving", "down")["state"] == "serving"
    assert "logs" not in world.ranks[1].calls


def test_an_older_pair_file_asks_for_none() -> None:
    older = {name: value for name, value in PATTERNS.items() if name not in ("proofs", "remarks")}
    assert parse_config(config() | {"patterns": older}).proofs == ()
