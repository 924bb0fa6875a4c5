"""System B: one worker on each GPU while the pair serves, with its part of the weights."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import gpu_process
from ansible_collections.twinserve.pair.plugins.module_utils.agent import verbs
from ansible_collections.twinserve.pair.plugins.module_utils.catalogue import merged
from ansible_collections.twinserve.pair.plugins.module_utils.gpu_process import Process, judge, parse
from ansible_collections.twinserve.pair.plugins.module_utils.render import rank_plans
from engine_data import plans as spark_plans
from fake_node import PLAN, FakeNode
from fake_world import World
from station_data import NODES, PRODUCT, RELEASE, plans, settings

QUERY = "nvidia-smi_--query-compute-apps=gpu_uuid,pid,process_name,used_memory"
WANTED = {"name": "VLLM::Worker_TP0", "least_gib": 210, "gpu": "GPU-aaaa"}
FULL = Process("GPU-aaaa", "71", "VLLM::Worker_TP0", 233.5)
STRANGER = Process("GPU-aaaa", "9", "ollama", 12.0)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNode:
    return FakeNode(tmp_path, monkeypatch)


def on_the_gpu(gib: float | None) -> Process:
    return Process("GPU-aaaa", "71", "VLLM::Worker_TP0", gib)


@pytest.mark.parametrize(
    ("processes", "said"),
    [
        pytest.param([FULL], [], id="as expected"),
        pytest.param([on_the_gpu(210.0)], [], id="just enough"),
        pytest.param([on_the_gpu(None)], [], id="size unknown"),
        pytest.param(
            [on_the_gpu(209.9)],
            [
                "VLLM::Worker_TP0 holds 209.9 GiB of the GPU's memory, at least 210 are expected: it does "
                "not have its part of the weights"
            ],
            id="too little",
        ),
        pytest.param([], ["VLLM::Worker_TP0 is not on the GPU: nothing is"], id="nothing"),
        pytest.param(
            [Process("GPU-aaaa", "72", "VLLM::Worker_TP1", 233.0), STRANGER],
            ["VLLM::Worker_TP0 is not on the GPU: VLLM::Worker_TP1 (pid 72), ollama (pid 9) is"],
            id="another rank's",
        ),
        pytest.param(
            [Process("GPU-bbbb", "71", "VLLM::Worker_TP0", 233.0)],
            ["VLLM::Worker_TP0 is not on the GPU: nothing is"],
            id="on the other GPU",
        ),
        pytest.param(
            [FULL, Process("GPU-aaaa", "99", "VLLM::Worker_TP0", 5.0)],
            ["VLLM::Worker_TP0 is on the GPU 2 times (pid 71, 99): run playbooks/stop.yml, then site.yml"],
            id="two",
        ),
        pytest.param(
            [FULL, STRANGER, Process("GPU-aaaa", "5", "VLLM::EngineCore", 0.6)],
            ["beside VLLM::Worker_TP0 the GPU is used by ollama (pid 9)"],
            id="somebody else, and a mere context",
        ),
    ],
)
def test_one_worker_with_its_part_of_the_weights(processes: list[Process], said: list[str]) -> None:
    assert judge(WANTED, processes) == said


def test_of_weights_whose_size_is_not_known_only_the_worker_is_asked_for() -> None:
    assert judge(WANTED | {"least_gib": None}, [on_the_gpu(3.0)]) == []
    assert judge(WANTED | {"gpu": None}, [Process("GPU-any", "7", "VLLM::Worker_TP0", 230.0)]) == []


def test_a_program_goes_by_the_title_that_it_gave_itself(tmp_path: Path) -> None:
    for pid, words in (("71", b"VLLM::Worker_TP0\0\0\0\0"), ("72", b"/usr/bin/python3\0-m\0x\0")):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/cmdline").write_bytes(words)
    text = (
        "GPU-aaaa, 71, python3, 239104\nGPU-bbbb, 72, [Not Found], [N/A]\n"
        "GPU-aaaa, 99, /opt/a, b, 1024\nNo running processes found\n"
    )
    assert parse(text, tmp_path) == [
        FULL,
        Process("GPU-bbbb", "72", "/usr/bin/python3", None),
        Process("GPU-aaaa", "99", "/opt/a, b", 1.0),
    ]


def test_each_rank_is_looked_at_on_its_own_gpu() -> None:
    assert [plan["gpu_process"] for plan in plans()] == [
        {"name": "VLLM::Worker_TP0", "least_gib": 210, "gpu": "GPU-aaaa"},
        {"name": "VLLM::Worker_TP1", "least_gib": 210, "gpu": "GPU-bbbb"},
    ]
    own = merged(PRODUCT.release(RELEASE), {"memory": {"estimate_gib": {"head": 100, "worker": 90}}})
    found = rank_plans([settings()] * 2, own, NODES, "pair1")
    assert [plan["gpu_process"]["least_gib"] for plan in found] == [92, 82]
    other = plans(model_id="someone/else", model_revision="a" * 40)
    assert [plan["gpu_process"]["least_gib"] for plan in other] == [None, None]
    assert [plan["gpu_process"] for plan in spark_plans()] == [None, None]


def test_a_release_without_a_gpu_asks_for_none_and_no_running_pair_restarts_for_it() -> None:
    own = merged(PRODUCT.release(RELEASE), {"gpu_process": None})
    bare = rank_plans([settings()] * 2, own, NODES, "pair1")
    assert [plan["gpu_process"] for plan in bare] == [None, None]
    assert [plan["digest"] for plan in bare] == [plan["digest"] for plan in plans()]


def test_the_agent_looks_when_the_rank_serves_and_not_while_it_loads(node: FakeNode) -> None:
    missing = ["VLLM::Worker_TP0 is not on the GPU: nothing is"]
    node.plan({**PLAN, "gpu_process": WANTED})
    node.answer(QUERY, "")
    assert verbs.state()["warnings"] == [], "it does not run"
    node.unit("active")
    node.container(True)
    assert verbs.state(loading=True)["warnings"] == []
    assert verbs.state()["warnings"] == missing
    node.answer(QUERY, "GPU-aaaa, 71, VLLM::Worker_TP0, 239104\n")
    assert verbs.state()["warnings"] == []
    node.plan(PLAN)
    node.answer(QUERY, "")
    assert verbs.state()["warnings"] == [], "a plan of a release before says nothing"


def test_a_driver_that_cannot_say_proves_nothing(node: FakeNode) -> None:
    node.answer("nvidia-smi", "Driver/library version mismatch", 18)
    (said,) = gpu_process.problems(WANTED)
    assert said.startswith("whether VLLM::Worker_TP0 is on the GPU is not known: nvidia-smi")


def test_it_is_shown_with_the_pair() -> None:
    world = World()
    world.until("serving")
    world.ranks[1].warnings = judge(WANTED, [])
    assert world.run(5)["warnings"] == [f"rank 1 (spark-b): {judge(WANTED, [])[0]}"]
