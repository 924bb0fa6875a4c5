"""System B: the whole command line of both ranks, as the recipe for two DGX Stations has it.

The files were written from the recipe, not by the product: a difference is an error of one of them. What is
otherwise than there, on purpose: the model lies in the whole cache, which is mounted (M-14); NCCL writes to
the rank's log instead of a file; the ranks reach nobody (HF_HUB_OFFLINE, VLLM_NO_USAGE_STATS); NCCL is in the
image, and so is VLLM_NCCL_SO_PATH.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.docker_argv import LinkError, docker_argv
from ansible_collections.twinserve.pair.plugins.module_utils.render import rank_plans
from station_data import LINKS, NODES, PRODUCT, RELEASE, config, plans, settings

GOLDEN = Path(__file__).parent / "golden"


def command_lines(**raw: Any) -> list[list[str]]:
    """Each rank's, the API listening as in the recipe. Digest and image name are tested elsewhere."""
    return [
        [_stand_in(word) for word in docker_argv(plan, link)]
        for plan, link in zip(plans(expose="direct", **raw), LINKS, strict=True)
    ]


def _stand_in(word: str) -> str:
    for beginning in ("twinserve.digest=", "localhost/twinserve/vllm:"):
        if word.startswith(beginning):
            return f"{beginning}..."
    return word


def option(argv: list[str], name: str) -> str:
    return argv[argv.index(name) + 1]


@pytest.mark.parametrize("rank", [0, 1])
def test_the_command_line_is_the_recipes(rank: int) -> None:
    golden = (GOLDEN / f"station.rank{rank}.txt").read_text(encoding="utf-8").splitlines()
    assert command_lines()[rank] == golden


@pytest.mark.parametrize(
    ("flag", "wanted"),
    [
        ("--speculative-config", {"method": "mtp", "num_speculative_tokens": 4}),
        ("--kernel-config", {"enable_flashinfer_autotune": False, "moe_backend": "flashinfer_cutlass"}),
        (
            "--compilation-config",
            {
                "cudagraph_mode": "FULL_DECODE_ONLY",
                "cudagraph_capture_sizes": [5, 10, 20, 40, 80],
                "pass_config": {"fuse_allreduce_rms": False},
            },
        ),
    ],
)
def test_the_three_json_flags_are_json_and_the_recipes(flag: str, wanted: dict[str, Any]) -> None:
    for argv in command_lines():
        assert json.loads(option(argv, flag)) == wanted


def test_l20_each_rank_has_its_own_interface_and_address_and_the_heads_as_master() -> None:
    """What differs between the ranks, all of it."""
    head, worker = command_lines()
    assert worker.pop() == "--headless"
    differing = [(one, two) for one, two in zip(head, worker, strict=True) if one != two]
    assert differing == [
        ("device=GPU-aaaa", "device=GPU-bbbb"),
        ("GLOO_SOCKET_IFNAME=enP1p3s0f0np0", "GLOO_SOCKET_IFNAME=enP9p3s0f0np0"),
        ("NCCL_IB_GID_INDEX=3", "NCCL_IB_GID_INDEX=5"),
        ("NCCL_IB_HCA=mlx5_1", "NCCL_IB_HCA=mlx5_0"),
        ("NCCL_SOCKET_IFNAME=enP1p3s0f0np0", "NCCL_SOCKET_IFNAME=enP9p3s0f0np0"),
        ("VLLM_HOST_IP=198.51.100.1", "VLLM_HOST_IP=198.51.100.2"),
        ("0", "1"),
    ]
    assert option(head, "--master-addr") == option(worker, "--master-addr") == "198.51.100.1"


@pytest.mark.parametrize("address", ["", None])
def test_l20_a_rank_that_does_not_know_its_address_is_not_started(address: str | None) -> None:
    link = {**LINKS[1], "rails": [{**LINKS[1]["rails"][0], "address": address}]}
    with pytest.raises(LinkError, match="does not say this rank's own address"):
        docker_argv(plans()[1], link)


def test_two_rails_are_data_and_a_gid_index_that_differs_between_them_is_left_out() -> None:
    second = {"netdev": "enP2p3s0f0np0", "hca": "mlx5_3", "address": "203.0.113.1", "gid_index": 7}
    link = {**LINKS[0], "rails": [LINKS[0]["rails"][0], second]}
    argv = docker_argv(plans(rails=2)[0], link)
    assert "NCCL_IB_HCA=mlx5_1,mlx5_3" in argv
    assert not [word for word in argv if word.startswith("NCCL_IB_GID_INDEX")]
    assert "VLLM_HOST_IP=198.51.100.1" in argv


def test_c17_a_rank_gets_the_one_gpu_by_its_uuid_and_never_all() -> None:
    bare = [{**node, "gpu_uuid": None} for node in NODES]
    for plan in rank_plans([settings()] * 2, PRODUCT.release(RELEASE), bare, "pair1"):
        assert "--gpus" not in plan["docker"], "preflight refuses a node whose GPU is not known"
    assert PRODUCT.release(RELEASE)["gpu_name"] == "GB300"


@pytest.mark.parametrize(
    ("raw", "sizes"),
    [
        ({"parallel": 16}, [5, 10, 20, 40, 80]),
        ({"parallel": 1}, [5]),
        ({"parallel": 2}, [5, 10]),
        ({"max_num_seqs": 6}, [5, 10, 20, 30]),
        ({"speculative_tokens": 2}, [3, 6, 12, 24, 48]),
        ({"speculative_tokens": 0, "parallel": "4"}, [1, 2, 4]),
    ],
)
def test_graphs_are_captured_for_each_sequence_and_its_drafts(raw: dict[str, Any], sizes: list[int]) -> None:
    for argv in command_lines(**raw):
        found = json.loads(option(argv, "--compilation-config"))["cudagraph_capture_sizes"]
        assert found == sizes
        assert int(option(argv, "--max-num-seqs")) * (raw.get("speculative_tokens", 4) + 1) == sizes[-1]
        assert ("--speculative-config" in argv) is (raw.get("speculative_tokens") != 0)


@pytest.mark.parametrize(
    ("raw", "there", "gone"),
    [
        ({"max_model_len": 65536}, ["--max-model-len", "65536"], "98304"),
        ({"gpu_memory_utilization": "0.9"}, ["--gpu-memory-utilization", "0.9"], "0.93"),
        ({"kv_cache_dtype": "auto"}, ["--kv-cache-dtype", "auto"], "fp8"),
        ({"prefix_caching": "no"}, ["--no-enable-prefix-caching"], "--enable-prefix-caching"),
        ({"nccl_debug": "WARN"}, ["NCCL_DEBUG=WARN"], "NCCL_DEBUG=INFO"),
        ({"nccl_channels": 8}, ["NCCL_MAX_NCHANNELS=8", "-e", "NCCL_MIN_NCHANNELS=8"], ""),
        ({"kernel_cache": "/data/kernels"}, ["VLLM_CACHE_ROOT=/cache/vllm"], ""),
        ({"extra_args": "--max-num-batched-tokens 4096"}, ["--max-num-batched-tokens", "4096"], ""),
        ({"shm_size": "16g"}, ["--shm-size", "16g"], "32g"),
    ],
)
def test_a_setting_reaches_both_ranks(raw: dict[str, Any], there: list[str], gone: str) -> None:
    for argv in command_lines(**raw):
        assert " ".join(there) in " ".join(argv)
        assert gone not in argv
        assert "" not in argv


def test_compiled_kernels_are_kept_only_where_somebody_says_so() -> None:
    assert [mount["target"] for mount in plans()[0]["mounts"]] == ["/root/.cache/huggingface"]
    kept = plans(kernel_cache="/data/kernels")[0]["mounts"][1]
    assert (kept["target"], kept["read_only"]) == ("/cache", False)


def test_the_worker_starts_first_and_the_head_stops_first() -> None:
    found = config()
    assert (found["start_order"], found["stop_order"]) == ([1, 0], "head_first")
    assert (found["rails"], found["max_rails"], found["comm"]) == (1, 2, "nccl")
    assert found["api"] == {"host": "127.0.0.1", "port": 18000, "bind": "127.0.0.1", "gateway": True}
    assert found["promise"]["parallel"] == 16
    assert config(max_num_seqs=4)["promise"]["parallel"] == 4


def test_no_secret_is_in_a_command_line() -> None:
    for argv in command_lines(hf_token="hf_secret", proxy_env={"https_proxy": "http://user:word@proxy"}):
        assert "hf_secret" not in " ".join(argv)
        assert "word@proxy" not in " ".join(argv)
