"""System B: what its settings take and refuse, its image's recipe, and what its model must be."""

from __future__ import annotations

import re
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.twinserve.pair.plugins.module_utils import gpu_choice, image_recipe, image_source
from ansible_collections.twinserve.pair.plugins.module_utils.model_transfer import checks, selected
from ansible_collections.twinserve.pair.plugins.module_utils.node_faults import warnings
from ansible_collections.twinserve.pair.plugins.module_utils.pair_finding import Pair
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import engine_names, load_product
from ansible_collections.twinserve.pair.plugins.plugin_utils.host_settings import check_host
from station_data import PRODUCT, RELEASE, faults, resolved, settings

DATA = PRODUCT.release(RELEASE)
OWN = f"sha256:{'ab' * 32}"


def test_the_defaults_are_the_recipes() -> None:
    own = settings()
    wanted = {
        "image": "vllm/vllm-openai",
        "image_digest": "sha256:4864d46625cbc3307623e29ac742030655e27249feba7b97ec925ce4cc4dfb56",
        "image_source": "build",
        "model_id": "nvidia/GLM-5.3-NVFP4",
        "model_revision": "e3b8f9f2fad29727dfa95e766c5cac18ea1414bf",
        "served_name": "nvidia/GLM-5.3-NVFP4",
        "container_name": "glm53-full",
        "api_port": 8000,
        "master_port": 29501,
        "rails": 1,
        "fabric_speed": 400,
        "parallel": 16,
        "max_num_seqs": 16,
        "max_model_len": 98304,
        "gpu_memory_utilization": 0.93,
        "kv_cache_dtype": "fp8",
        "prefix_caching": True,
        "speculative_tokens": 4,
    }
    assert {name: own[name] for name in wanted} == wanted
    assert resolved().warnings == []


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            {"accept_nvidia_open_model_license": False},
            "nvidia/GLM-5.3-NVFP4 is under the NVIDIA Open Model Agreement, and GLM-5.3's own licence "
            "applies beside it: read both on the model's page and set accept_nvidia_open_model_license: true "
            "to accept them, or set model_id and model_revision of another checkpoint",
        ),
        (
            {"parallel": 8, "max_num_seqs": 4},
            "parallel 8 and max_num_seqs 4 are one setting by two names: set one of them",
        ),
        (
            {"image_source": "auto"},
            "image_source auto would serve vllm/vllm-openai as it was published, without the NCCL that "
            "two nodes need: set image_source: build, or the image and image_digest of an image of yours "
            "that was built so",
        ),
        (
            {"model_id": "me/mine"},
            "model_id me/mine needs its own model_revision: the release pins none for it",
        ),
        (
            {"extra_args": "--distributed-executor-backend ray"},
            "extra_args: --distributed-executor-backend is managed; use nothing, the ranks meet by "
            "themselves, without Ray",
        ),
        ({"extra_args": "--max-num-seqs=8"}, "extra_args: --max-num-seqs is managed; use parallel"),
        ({"extra_args": "--max_num_seqs 8"}, "extra_args: --max-num-seqs is managed; use parallel"),
        ({"extra_args": "-r 0"}, "extra_args: -r is managed; use the ranks of the inventory"),
        (
            {"extra_args": "--api-key x"},
            "extra_args: --api-key is managed; use expose (a command line is no place for a secret)",
        ),
        ({"extra_args": "--max-model 4096"}, "extra_args: write --max-model in full (--max-model-len)"),
        (
            {"extra_args": "--max-model-len 0"},
            "extra_args: max_model_len is 0: it takes a whole number of 1 or more",
        ),
        (
            {"engine_env": {"VLLM_HOST_IP": "192.0.2.1"}},
            "engine_env: VLLM_HOST_IP is managed; use fabric_netdev",
        ),
        (
            {"engine_env": {"NCCL_DEBUG_FILE": "/tmp/x"}},
            "engine_env: NCCL_DEBUG_FILE is managed; use nothing, what NCCL says is in the rank's log",
        ),
        ({"engine_env": {"NCCL_DEBUG": "WARN"}}, "engine_env: NCCL_DEBUG is managed; use nccl_debug"),
        (
            {"gpu_memory_utilization": 1.1},
            "gpu_memory_utilization is 1.1: it takes a number from 0.1 to 1",
        ),
        ({"kv_cache_dtype": "int4"}, "kv_cache_dtype is 'int4': it takes fp8 or auto"),
        ({"speculative_tokens": -1}, "speculative_tokens is -1: it takes a whole number of 0 or more"),
        ({"prefix_caching": "maybe"}, "prefix_caching is 0 or 1, not 'maybe' "
            "(true, false, yes and no are taken too)"),
        ({"rails": 3}, "rails is 3: it takes auto, 1 or 2"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_by_name(raw: dict[str, Any], said: str) -> None:
    assert faults(**raw) == [said]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"rails": 2}, "two rails are not validated with this model and engine"),
        ({"rails": "auto"}, "two rails are not validated with this model and engine"),
        ({"gpu_memory_utilization": 0.98}, "gpu_memory_utilization 0.98 is above 0.93"),
        ({"max_model_len": 350000}, "max_model_len 350000 is above 98304"),
        ({"extra_args": "--max-model-len 350000"}, "max_model_len 350000 is above 98304"),
        ({"extra_args": "--max_model_len=350000"}, "max_model_len 350000 is above 98304"),
        ({"parallel": 32}, "parallel 32 is above 16"),
        ({"gpu_memory_utilization": 0.9, "max_model_len": 65536, "parallel": 8}, ""),
    ],
)
def test_what_older_recipes_advise_is_warned_of(raw: dict[str, Any], said: str) -> None:
    assert faults(**raw) == []
    told = resolved(**raw).warnings
    assert [said in text for text in told] == ([True] if said else [])


@pytest.mark.parametrize(
    ("raw", "both"),
    [({}, 16), ({"parallel": 4}, 4), ({"max_num_seqs": "4"}, 4), ({"parallel": 4, "max_num_seqs": 4}, 4)],
)
def test_parallel_and_max_num_seqs_are_one_setting(raw: dict[str, Any], both: int) -> None:
    own = settings(**raw)
    assert (own["parallel"], own["max_num_seqs"]) == (both, both)


def test_another_checkpoint_needs_no_licence_of_nvidias() -> None:
    other = {"model_id": "me/mine", "model_revision": "a" * 40, "accept_nvidia_open_model_license": False}
    assert faults(**other) == []
    assert checks(settings(**other), DATA) == {}


def test_the_model_is_looked_at_beyond_its_files() -> None:
    own = settings()
    (one,) = selected(own, DATA)
    assert (one["repo"], one["revision"]) == (own["model_id"], own["model_revision"])
    assert checks(own, DATA) == {
        f"{own['model_id']}@{own['model_revision']}": {
            "shards": 50,
            "config": {
                "architectures": ["GlmMoeDsaForCausalLM"],
                "quantization_config.quant_algo": "MIXED_PRECISION",
            },
        }
    }
    # 464.2 GB, in GiB, and room for what is beside the shards.
    assert float(one["disk_gib"]) > 464.2e9 / 2**30


def test_the_image_is_the_published_one_with_nccl_by_its_hash() -> None:
    own = settings()
    recipe = image_recipe.resolved(own, DATA)
    assert recipe is not None
    written = image_recipe.files(recipe)
    (line,) = written["requirements.txt"].splitlines()
    assert re.fullmatch(r"nvidia-nccl-cu13==2\.30\.7 --hash=sha256:[0-9a-f]{64}", line)
    steps = written["Dockerfile"].splitlines()
    assert [step.split()[0] for step in steps] == ["FROM", "WORKDIR", "COPY", "RUN", "RUN", "ENV", "WORKDIR"]
    assert steps[0] == f"FROM {own['image']}@{own['image_digest']}"
    assert steps[2] == "COPY requirements.txt requirements.txt"
    assert "--no-deps --force-reinstall --require-hashes --requirement requirements.txt" in steps[3]
    assert 'version("nvidia-nccl-cu13") == "2.30.7"' in steps[4]
    assert "GlmMoeDsaConfig" in steps[4]
    assert steps[5] == 'ENV VLLM_NCCL_SO_PATH="/opt/twinserve/libnccl.so.2"'
    for step in steps[3:5]:  # lines of a shell, and of Python in it
        assert subprocess.run(["sh", "-n", "-c", step.removeprefix("RUN ")], check=False).returncode == 0
        (program,) = re.findall(r"python3 -c '([^']*)'", step)
        compile(program, "step", "exec")


def test_the_built_image_serves_and_the_published_one_never() -> None:
    wanted = image_source.wanted(settings(), DATA)
    assert wanted["names"] == [wanted["built"]]
    assert wanted["pinned"] is None
    own = settings(image_source="pull", image="registry.example/vllm-nccl", image_digest=OWN)
    assert image_source.names(own, DATA)[0] == f"registry.example/vllm-nccl@{OWN}"


def test_the_engines_parser_is_a_program() -> None:
    python, option, program = DATA["parser"]
    assert (python, option) == ("python3", "-c")
    compile(program, "parser", "exec")


def test_c17_the_gb300_is_found_beside_a_smaller_card() -> None:
    gpu = {"names": ["NVIDIA RTX PRO 6000", "NVIDIA GB300"], "uuids": ["GPU-aaaa", "GPU-bbbb"]}
    assert gpu_choice.choose({"gpu": gpu}, settings(), DATA).uuid == "GPU-bbbb"
    gpu = {"names": ["NVIDIA RTX PRO 6000"], "uuids": ["GPU-aaaa"]}
    said = "expected one GB300, found 0 (RTX PRO 6000); set gpu_uuid"
    assert gpu_choice.choose({"gpu": gpu}, settings(), DATA).fault == said


def test_a_host_below_stations_gets_this_engine() -> None:
    group = Path(__file__).resolve().parents[2] / "group_vars/stations.yml"
    raw = {**yaml.safe_load(group.read_text()), "accept_nvidia_open_model_license": True}
    pair = Pair("pair1", ("a", "b"))
    outcome = check_host("a", pair, {"a": raw, "b": raw}, {"a": list(raw), "b": list(raw)})
    assert [fault.text for fault in outcome.faults] == []
    assert (outcome.settings["release"], outcome.release["engine"]) == (RELEASE, "vllm")


def test_one_station_is_no_pair() -> None:
    raw = {"engine": "vllm", "accept_nvidia_open_model_license": True}
    outcome = check_host("a", Pair("pair1", ("a",)), {"a": raw}, {"a": list(raw)})
    said = ["pair1 has 1 hosts: vllm glm-5.3-nvfp4 serves on 2"]
    assert [fault.text for fault in outcome.faults] == said


@pytest.mark.parametrize(("one", "two"), [*combinations(engine_names(), 2)])
def test_engines_mean_the_same_by_a_name_that_both_have(one: str, two: str) -> None:
    """A setting that an engine says anew differs in its default and its sentence only."""
    mine, theirs = (load_product(name).specs for name in (one, two))
    for name in set(mine) & set(theirs):
        here, there = mine[name], theirs[name]
        assert (here.type, here.choices, here.scope, here.group) == (
            *(there.type, there.choices, there.scope, there.group),
        ), name


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, []),
        ({"drafter": "mtp", "context": 4096}, ["ignored, as engine vllm lacks them: context, drafter"]),
        ({"drafter": "", "context": None}, []),
    ],
)
def test_settings_of_the_other_engine_are_ignored_and_named(more: dict[str, Any], said: list[str]) -> None:
    """What a pair of Sparks in the same inventory needs is no fault of a pair of Stations."""
    raw = {"engine": "vllm", "accept_nvidia_open_model_license": True, **dict(sorted(more.items()))}
    outcome = check_host(
        "a", Pair("pair1", ("a", "b")), {"a": raw, "b": raw}, {"a": list(raw), "b": list(raw)}
    )
    assert [fault.text for fault in outcome.faults] == []
    assert outcome.warnings == said


@pytest.mark.parametrize(
    ("used", "raw", "free"),
    [
        (4.0, {}, None),
        (20.0, {}, 231),
        (20.0, {"gpu_memory_utilization": 0.9}, None),
        (20.0, {"extra_args": "--gpu-memory-utilization 0.9"}, None),
        (80.0, {"gpu_memory_utilization": 0.9}, 171),
    ],
)
def test_what_is_in_the_gpus_memory_already_is_told_before_a_start(
    used: float, raw: dict[str, Any], free: int | None
) -> None:
    gpu = {"names": ["NVIDIA RTX PRO 2000", "NVIDIA GB300"], "uuids": ["GPU-aaaa", "GPU-bbbb"]}
    node = {"gpu": {**gpu, "memory": [(16.0, 15.0), (250.69, used)]}, "services": {}}
    told = warnings(node, 1, settings(**raw), DATA)
    beginning = f"warn worker: the GPU has {free} of its 251 GiB free, the engine takes "
    assert [text[: len(beginning)] for text in told] == ([beginning] if free else [])
    running = {**node, "services": {"twinserve-rank.service": {"ActiveState": "active"}}}
    assert warnings(running, 1, settings(**raw), DATA) == []
    assert warnings({**node, "gpu": gpu}, 1, settings(**raw), DATA) == []
