"""One GPU of several, by its UUID; and what a container needs to pin memory."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import container_limits, gpu_choice
from ansible_collections.twinserve.pair.plugins.module_utils.render import rank_plans
from engine_data import NODES, PRODUCT, faults, plans, settings

STATION = {"names": ["NVIDIA RTX PRO 6000", "NVIDIA GB300"], "uuids": ["GPU-aaaa", "GPU-bbbb"]}


def choose(
    gpu: dict[str, list[str]] | None = STATION, name: str | None = "GB300", **raw: Any
) -> gpu_choice.Choice:
    return gpu_choice.choose({"gpu": gpu}, settings(**raw), {"gpu_name": name})


def gpus(*names: str) -> dict[str, list[str]]:
    return {"names": [f"NVIDIA {name}" for name in names], "uuids": [f"GPU-{n}" for n in range(len(names))]}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (STATION, None),
        (gpus("GB300"), None),
        (gpus("RTX PRO 6000"), "expected one GB300, found 0 (RTX PRO 6000); set gpu_uuid"),
        (gpus("GB300", "GB300"), "expected one GB300, found 2 (GB300, GB300); set gpu_uuid"),
    ],
)
def test_c17_of_several_gpus_the_engines_own_is_passed(found: dict[str, list[str]], said: str | None) -> None:
    choice = choose(found)
    assert choice.fault == said
    assert (choice.uuid is not None) is (said is None)
    assert choose().uuid == "GPU-bbbb"


def test_c17_what_is_set_counts_and_must_be_there() -> None:
    assert choose(gpus("RTX PRO 6000"), gpu_uuid="GPU-0").fault is None
    assert choose(gpu_uuid="GPU-cccc").fault == "gpu_uuid GPU-cccc is no GPU of this node: nvidia-smi -L"
    assert choose(name=None) == gpu_choice.Choice(), "one kind alone: the container gets all"
    assert choose(None, gpu_uuid="GPU-1") == gpu_choice.Choice("GPU-1"), "nvidia-smi's failure is told"


def test_c18_a_number_becomes_the_uuid_on_the_node_itself() -> None:
    choice = choose(gpu_index=1)
    assert (choice.uuid, choice.note) == ("GPU-bbbb", "warn gpu_index resolved to GPU-bbbb (NVIDIA GB300)")
    assert choose(gpu_index=2).fault == "gpu_index is 2: this node has 2 GPUs, 0 to 1: nvidia-smi -L"
    assert (
        choose(gpus("GB10"), gpu_index=1).fault == "gpu_index is 1: this node has one GPU, 0: nvidia-smi -L"
    )
    assert faults(gpu_index=1, gpu_uuid="GPU-aaaa") == [
        "gpu_uuid and gpu_index both name a GPU: set one of them"
    ]


def test_c18_docker_gets_the_uuid_and_never_a_number() -> None:
    nodes = [{**NODES[0], "gpu_uuid": "GPU-bbbb"}, NODES[1]]
    head, worker = rank_plans([settings(gpu_index=1)] * 2, PRODUCT.release("v1.1"), nodes, "pair1")
    assert head["docker"][:2] == ["--gpus", "device=GPU-bbbb"]
    assert worker["docker"][:2] == ["--gpus", "all"]
    assert head["digest"] != worker["digest"]


@pytest.mark.parametrize(
    "lacking", [[], ["--ulimit", "memlock=-1"], ["--ulimit=memlock=-1", "--cap-add=IPC_LOCK"]]
)
def test_c19_memory_may_always_be_pinned(lacking: list[str]) -> None:
    words = container_limits.completed(["--user", "1000:1000", *lacking])
    text = " ".join(words).replace("=memlock", " memlock").replace("add=", "add ")
    assert text.count("--ulimit memlock=-1") == text.count("--cap-add IPC_LOCK") == 1
    given = plans()[0]["docker"]
    assert container_limits.completed(given) == given


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ulimit", "memlock=65536"], ["memlock must be unlimited for RDMA (got 65536)"]),
        (["--ulimit=memlock=65536:-1"], ["memlock must be unlimited for RDMA (got 65536:-1)"]),
        (["--ulimit", "memlock=-1:-1"], []),
        (["--ulimit", "stack=67108864"], []),
        ([], []),
    ],
)
def test_c19_a_release_file_that_limits_it_is_refused(words: list[str], said: list[str]) -> None:
    assert container_limits.faults({"docker": [{"words": ["--ipc", "host"]}, {"words": words}]}) == said
