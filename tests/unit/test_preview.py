"""What a run that only looks prints: each rank's whole command, with words for what it cannot know."""

from __future__ import annotations

import shlex
from typing import Any

import fake_pair
import pytest
import station_data
from ansible_collections.twinserve.pair.plugins.filter.hosts import FilterModule
from ansible_collections.twinserve.pair.plugins.module_utils import preview
from engine_data import PRODUCT, settings
from probes import NAMES

FILTERS = FilterModule().filters()
RELEASE = PRODUCT.release("v1.1")
HEAD_LINK = [{"netdev": "enp1s0f1np1", "hca": "rocep1s0f1", "address": "198.51.100.1"}]
WORKER_LINK = [{"netdev": "enp1s0f0np0", "hca": "rocep1s0f0", "address": "198.51.100.2"}]


def probed(devices: list[Any], link: list[dict[str, str]]) -> dict[str, Any]:
    """A node that was looked at, as it is after an earlier run."""
    return {
        "hf": {"home": "/home/ops/.cache/huggingface", "snapshots": {"o/m@1": {"complete": True}}},
        "kernel_cache": "/home/ops/.cache/kernels",
        "devices": [device.as_dict() for device in devices],
        "image": None,
        "services": {},
        "rank_plan": {"expected_link": link},
    }


HEAD = probed(fake_pair.head(main=4), HEAD_LINK)
WORKER = probed(fake_pair.worker(main=5), WORKER_LINK)


def hosts(*nodes: dict[str, Any] | None, **own: Any) -> list[dict[str, Any]]:
    """The pair's hosts, with their probes and with settings."""
    facts = settings(**own)
    looked = {"msg": "Task failed: Failed to connect to the host via ssh: Connection timed out\n"}
    return [
        {
            "inventory_hostname": name,
            "ansible_facts": {"twinserve_settings": facts, **({"twinserve_node": node} if node else {})},
            "__preflight_looked": {} if node else looked,
        }
        for name, node in zip(NAMES, nodes, strict=True)
    ]


def shown(*nodes: dict[str, Any] | None, **own: Any) -> list[str]:
    found: list[str] = FILTERS["unseen_report"](hosts(*nodes, **own), RELEASE, "pair1")
    return found


def words(lines: list[str], rank: int) -> list[str]:
    """The command of a rank, as a shell would take it."""
    (line,) = [line for line in lines if line.startswith(f"rank {rank} ")]
    return shlex.split(line.partition(" would run: ")[2])


def test_f20_a_node_that_is_off_gets_placeholders_and_is_named() -> None:
    lines = shown(HEAD, None)
    assert lines[0] == (
        "spark-b cannot be looked at: Failed to connect to the host via ssh: Connection timed out"
    )
    assert lines[1].startswith("spark-a was looked at: RDMA devices rocep1s0f1 ACTIVE (198.51.100.1/24), ")
    assert lines[1].endswith("; the image is not here; the model is here; its rank does not run")
    worker = words(lines, 1)
    assert worker[:2] == ["docker", "run"]
    for word in (
        "<model cache of spark-b>:/root/.cache/huggingface:ro",
        "NCCL_IB_HCA=<RDMA devices of spark-b>",
        "NCCL_IB_GID_INDEX=<GID index of spark-b>",
        "NCCL_SOCKET_IFNAME=<rail port of spark-b>",
        "twinserve.digest=<digest of spark-b>",
    ):
        assert word in worker
    assert worker[worker.index("--master") + 1] == "198.51.100.1"
    assert lines[-1].startswith("Nothing was changed")


def test_f20_without_the_head_nobody_knows_its_rail() -> None:
    lines = shown(None, WORKER, hf_cache="/data/hf")
    assert words(lines, 1)[words(lines, 1).index("--master") + 1] == "<rail address of spark-a>"
    assert "/data/hf:/root/.cache/huggingface:ro" in words(lines, 0)


def test_f20_what_is_known_is_shown_as_the_start_would_find_it() -> None:
    lines = shown(HEAD, WORKER)
    assert [line for line in lines if "<" in line] == []
    for rank, hca, index in ((0, "rocep1s0f1", 4), (1, "rocep1s0f0", 5)):
        assert f"NCCL_IB_HCA={hca}" in words(lines, rank)
        assert f"NCCL_IB_GID_INDEX={index}" in words(lines, rank)


def test_f20_an_address_that_is_not_there_yet_has_no_index() -> None:
    bare = {**HEAD, "devices": [device.as_dict() for device in fake_pair.head(rocep1s0f1={"gids": ()})]}
    assert "NCCL_IB_GID_INDEX=<GID index of spark-a>" in words(shown(bare, WORKER), 0)


@pytest.mark.parametrize(
    ("nodes", "names"), [((HEAD, WORKER), []), ((HEAD, None), ["spark-b"]), ((None, None), list(NAMES))]
)
def test_f20_who_could_not_be_looked_at(nodes: tuple[Any, ...], names: list[str]) -> None:
    assert list(FILTERS["unseen"](hosts(*nodes))) == names


def test_o06_a_node_that_is_left_out_of_the_run_is_told_so() -> None:
    seen = [hosts(HEAD, WORKER)[0], {"inventory_hostname": "spark-b"}]
    assert FILTERS["unseen"](seen) == {"spark-b": "spark-b cannot be looked at: it is not in this run"}
    assert FILTERS["way_to_see"](seen, "pair1") == "remove --limit, or name the pair: --limit pair1"


def test_f20_a_node_that_does_not_answer_is_to_be_switched_on() -> None:
    off = {"inventory_hostname": "spark-b", "__preflight_looked": {"msg": "Failed to connect"}}
    said = FILTERS["way_to_see"]([hosts(HEAD, WORKER)[0], off], "pair1")
    assert said == "switch spark-b on, or mend the way to it, then run this again"


def test_nothing_is_needed_of_a_node_that_could_not_be_read() -> None:
    (made,) = preview.inputs(
        [{"hf": None, "rank_plan": None}], ["a"], [{"hf_cache": "~/x", "kernel_cache": None}], RELEASE
    )
    assert (made["hf_cache"], made["kernel_cache"]) == ("<model cache of a>", "<kernel cache of a>")


def test_c17_the_one_gpu_is_shown_or_that_it_will_be_looked_up() -> None:
    facts = station_data.settings(expose="direct")
    gpu = {"names": ["NVIDIA RTX PRO 6000", "NVIDIA GB300"], "uuids": ["GPU-aaaa", "GPU-bbbb"]}
    two = [
        {**host, "ansible_facts": {**host["ansible_facts"], "twinserve_settings": facts}}
        for host in hosts({**HEAD, "gpu": gpu}, None)
    ]
    release = station_data.PRODUCT.release(station_data.RELEASE)
    lines = FILTERS["unseen_report"](two, release, "pair1")
    assert "device=GPU-bbbb" in words(lines, 0)
    assert "VLLM_HOST_IP=198.51.100.1" in words(lines, 0)
    assert "device=<GB300 of spark-b>" in words(lines, 1)
    assert "VLLM_HOST_IP=<rail address of spark-b>" in words(lines, 1)
