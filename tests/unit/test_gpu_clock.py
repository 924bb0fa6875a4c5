"""A limit of the GPU's clock: asked of the right GPU, and read back, since the driver's word is no proof."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.agent import clocks, verbs
from ansible_collections.twinserve.pair.plugins.module_utils.render import rank_plans
from engine_data import NODES, PRODUCT, plans, settings
from fake_node import PLAN, FakeNode
from fake_world import World

ABOVE = "the GPU runs at 2411 MHz, above gpu_clock_max 2200: the driver took the limit and does not hold it"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNode:
    return FakeNode(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        ("2190\n", []),
        ("208\n", []),
        ("2215\n", []),  # the next step of the clock
        ("2411\n", [ABOVE]),
        ("208\n2411\n", [ABOVE]),
        ("[N/A]\n", ["whether gpu_clock_max holds is not known: nvidia-smi reads no clock"]),
    ],
)
def test_the_clock_is_read_back_and_one_above_the_limit_is_told(
    node: FakeNode, read: str, said: list[str]
) -> None:
    node.answer("nvidia-smi_--query-gpu=clocks.sm", read)
    assert clocks.problems({"max": 2200, "gpu": None}) == said


def test_a_clock_that_cannot_be_read_proves_nothing(node: FakeNode) -> None:
    node.answer("nvidia-smi", "Driver/library version mismatch", 18)
    (said,) = clocks.problems({"max": 2200, "gpu": None})
    assert said.startswith("whether gpu_clock_max holds is not known: nvidia-smi ")


def test_only_the_gpu_of_the_rank_is_read_and_only_while_it_runs(node: FakeNode) -> None:
    node.plan({**PLAN, "clock": {"max": 2200, "gpu": "GPU-bbbb"}})
    node.answer("nvidia-smi_-i_GPU-bbbb_--query-gpu=clocks.sm", "2411\n")
    assert verbs.state()["warnings"] == []
    node.unit("active")
    node.container(True)
    assert verbs.state()["warnings"] == [ABOVE]
    node.plan(PLAN)
    assert verbs.state()["warnings"] == []


def test_c17_the_limit_is_set_for_the_gpu_that_the_container_gets() -> None:
    nodes = [{**NODES[0], "gpu_uuid": "GPU-bbbb"}, NODES[1]]
    head, worker = rank_plans([settings(gpu_clock_max=2200)] * 2, PRODUCT.release("v1.1"), nodes, "pair1")
    assert head["before"] == [["nvidia-smi", "-i", "GPU-bbbb", "--lock-gpu-clocks", "0,2200"]]
    assert head["after"] == [["nvidia-smi", "-i", "GPU-bbbb", "--reset-gpu-clocks"]]
    assert head["clock"] == {"max": 2200, "gpu": "GPU-bbbb"}
    assert worker["before"] == [["nvidia-smi", "--lock-gpu-clocks", "0,2200"]]
    assert worker["clock"] == {"max": 2200, "gpu": None}
    untouched: dict[str, Any] = plans()[0]
    assert (untouched["before"], untouched["after"], untouched["clock"]) == ([], [], None)


def test_what_a_node_warns_of_is_shown_with_the_pair() -> None:
    world = World()
    world.ranks[1].warnings = [ABOVE]
    world.until("serving")
    assert world.run(5)["warnings"] == [f"rank 1 (spark-b): {ABOVE}"]
