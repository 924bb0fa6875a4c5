"""Plans of the ranks and the pair: what is in them, what is left out, and what their digest stands for."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.render import (
    pair_config,
    rank_plans,
    snapshot_path,
)
from engine_data import NODES, PRODUCT, plans, settings

# Contract: the variables of both ranks at the defaults of v1.1.
VARIABLES = """\
TF_GLM_KV=fp8 TF_GLM_DENSE=q4 TF_GLM_COMM=roce TF_ROCE_MAX_KB=512 TF_GLM_COPY_DRAFTS=1 TF_GLM_COPY_MAX=15
TF_GLM_DFLASH_POLICY=fnc7:0.3 TF_GLM_HC_SPLIT=1 TF_GLM_PREFILL_OVERLAP=2 TF_GLM_KDA_CHUNKED=1
TF_GLM_WIDE_GRAPHS=16 TF_GLM_COPY_REPLY_MATCH=16 TF_GLM_MULTI_LONE=1 TF_GLM_MULTI_PREFILL=1 TF_GLM_L2PF=1
TF_GLM_EXL3_LOADS=nc TF_GLM_SHARED_PREFIX=1 TENSORFOLD_MEMORY_RESERVE_GIB=14.5 TF_GLM_CACHE_GIB=11
TENSORFOLD_NO_UPDATE_CHECK=1
HF_HUB_OFFLINE=1 NCCL_MIN_NCHANNELS=4 NCCL_MAX_NCHANNELS=4
"""


def test_the_environment_of_the_defaults_is_the_contracts() -> None:
    expected = sorted(VARIABLES.split())
    assert len(expected) == 20 + 3
    for plan in plans():
        assert [f"{name}={value}" for name, value in plan["env"].items()] == expected


def test_m18_ranks_serve_from_the_cache_and_never_download() -> None:
    for plan in plans():
        assert plan["env"]["HF_HUB_OFFLINE"] == "1"
        own = settings()
        snapshot = snapshot_path(own["model_id"], own["model_revision"])
        assert f"/root/.cache/huggingface/{snapshot}" in plan["command"]
        assert not [word for word in plan["command"] if "download" in word]
        assert {
            "source": NODES[plan["rank"]]["hf_cache"],
            "target": "/root/.cache/huggingface",
            "read_only": True,
        } in (plan["mounts"])


# A setting, the variables that it changes (all others stay), and arguments that it adds or takes away.
REACHES: list[tuple[dict[str, Any], dict[str, str | None]]] = [
    ({"split": False}, {"TF_GLM_HC_SPLIT": "0", "TF_GLM_PREFILL_OVERLAP": "0"}),
    ({"copy_code": "no"}, {"TF_GLM_WIDE_GRAPHS": "0", "TF_GLM_COPY_REPLY_MATCH": "0"}),
    ({"copy": False}, {"TF_GLM_COPY_DRAFTS": "0"}),
    ({"copy_max": 3}, {"TF_GLM_COPY_MAX": "3"}),
    ({"dense": "bf16"}, {"TF_GLM_DENSE": "bf16"}),
    ({"comm": "nccl"}, {"TF_GLM_COMM": "nccl"}),
    ({"draft_policy": "fc5:0.3"}, {"TF_GLM_DFLASH_POLICY": "fc5:0.3"}),
    ({"kda_chunked": 0}, {"TF_GLM_KDA_CHUNKED": "0"}),
    ({"shared_prefix": 0}, {"TF_GLM_SHARED_PREFIX": "0"}),
    ({"multi_prefill": 0}, {"TF_GLM_MULTI_PREFILL": "0"}),
    ({"kv_pool_gib": "12.50"}, {"TF_GLM_CACHE_GIB": "12.5"}),
    ({"memory_reserve_gib": 20}, {"TENSORFOLD_MEMORY_RESERVE_GIB": "20"}),
    ({"image_tokens": 1024}, {"TENSORFOLD_GLM_IMAGE_TOKENS": "1024"}),
    ({"video_tokens": 8192}, {"TENSORFOLD_GLM_VIDEO_TOKENS": "8192"}),
    ({"video_frames": 64}, {"TENSORFOLD_GLM_VIDEO_FRAMES": "64"}),
    ({"max_images": 0}, {"TENSORFOLD_GLM_MAX_IMAGES": "0"}),  # zero is a value
    ({"max_videos": 1}, {"TENSORFOLD_GLM_MAX_VIDEOS": "1"}),
    ({"request_image_tokens": 4096}, {"TENSORFOLD_GLM_REQUEST_IMAGE_TOKENS": "4096"}),
    ({"request_video_tokens": 4096}, {"TENSORFOLD_GLM_REQUEST_VIDEO_TOKENS": "4096"}),
    ({"nccl_channels": 8}, {"NCCL_MIN_NCHANNELS": "8", "NCCL_MAX_NCHANNELS": "8"}),
    ({"nccl_debug": "INFO"}, {"NCCL_DEBUG": "INFO"}),
    ({"engine_env": {"TF_GLM_L2PF": 0, "MINE": "x", "NOT": ""}}, {"TF_GLM_L2PF": "0", "MINE": "x"}),
    ({"hf_token": "hf_secret", "proxy_env": {"https_proxy": "http://p"}}, {}),
]


@pytest.mark.parametrize(("raw", "changes"), REACHES)
def test_a_setting_reaches_the_environment_of_both_ranks_alone(
    raw: dict[str, Any], changes: dict[str, str]
) -> None:
    for before, after in zip(plans(), plans(**raw), strict=True):
        assert after["env"] == {**before["env"], **changes}
        assert after["command"] == before["command"]
        assert "" not in after["env"].values()  # F-04


def tail(**raw: Any) -> list[str]:
    command: list[str] = plans(**raw)[1]["command"]
    return command[command.index("--drafter") :]


def test_arguments_follow_the_contracts_order() -> None:
    assert tail(drafter="mtp", thinking=False, vision_urls=True, max_tokens=99, extra_args="--top-k 5") == [
        *(
            "--drafter",
            "none",
            "--context",
            "1048576",
            "--parallel",
            "1",
            "--max-tokens",
            "99",
            "--no-thinking",
        ),
        *("--vision", "--vision-urls", "--top-k", "5"),
    ]


def test_the_api_belongs_to_the_head_and_listens_on_loopback_by_default() -> None:
    head, worker = plans()
    start = head["command"].index("--name")
    assert head["command"][start : start + 6] == [
        *("--name", "GLM-5.3-Flash-EXL3", "--host", "127.0.0.1", "--port", "18888"),
    ]
    assert not {"--name", "--host", "--port"} & set(worker["command"])


def test_weights_are_read_only_and_kernels_have_a_folder_for_their_image() -> None:
    weights, kernels = plans()[0]["mounts"]
    assert weights == {
        "source": "/home/ops/.cache/huggingface",
        "target": "/root/.cache/huggingface",
        "read_only": True,
    }
    assert kernels == {
        "source": "/home/ops/.cache/tensorfold-glm53/cb7c56f7f921",
        "target": "/cache",
        "read_only": False,
    }


def test_c15_another_image_gets_another_folder_of_kernels() -> None:
    other = plans(image_digest=f"sha256:{'ab' * 32}")[0]
    assert other["mounts"][1]["source"].endswith("/abababababab")
    assert other["image"].endswith(f"@sha256:{'ab' * 32}")


def test_a_rank_gets_the_gpu_that_its_node_names() -> None:
    facts = [settings(gpu_uuid="GPU-aaaa"), settings()]
    head, worker = rank_plans(facts, PRODUCT.release("v1.1"), NODES, "pair1")
    assert head["docker"][:2] == ["--gpus", "device=GPU-aaaa"]
    assert worker["docker"][:2] == ["--gpus", "all"]


@pytest.mark.parametrize(
    ("raw", "restarts"),
    [
        ({"parallel": 2}, True),
        ({"rails": 1}, True),
        ({"nccl_ib_hca": "rocep1s0f1"}, True),
        ({"fabric_netdev": "enp1s0f1np1"}, True),
        ({"fabric_peer": "198.51.100.2"}, True),
        ({"nccl_debug": "INFO"}, True),
        ({"image_digest": f"sha256:{'ab' * 32}"}, True),
        ({"parallel": "4"}, False),
        ({"canary_interval": 5, "wait_timeout": 60, "restart_limit": 1, "stop_timeout": 31}, False),
        ({"model_verify": "sha256", "prepare": "never"}, False),
    ],
)
def test_the_digest_stands_for_what_a_container_was_made_from(raw: dict[str, Any], restarts: bool) -> None:
    for before, after in zip(plans(), plans(**raw), strict=True):
        assert (before["digest"] != after["digest"]) == restarts


def test_a_rank_knows_the_ports_that_it_will_listen_on() -> None:
    head, worker = plans(extra_args="--master-port 29600")
    assert head["ports"] == [
        {"setting": "engine_port", "host": "127.0.0.1", "port": 18888},
        {"setting": "master_port", "host": "", "port": 29600},
    ]
    assert worker["ports"] == []


def test_an_expected_link_is_no_reason_to_restart() -> None:
    moved = [{**node, "expected_link": [{"netdev": "e1"}]} for node in NODES]
    facts = [settings()] * 2
    release = PRODUCT.release("v1.1")
    assert (
        rank_plans(facts, release, moved, "p")[0]["digest"]
        == rank_plans(facts, release, NODES, "p")[0]["digest"]
    )


def config(release: str = "v1.1", /, **raw: Any) -> dict[str, Any]:
    return pair_config(plans(release, **raw), settings(release, **raw), PRODUCT.release(release), NODES)


def test_the_pairs_configuration() -> None:
    found = config(restart_limit=5)
    assert found["ranks"] == [
        {"rank": 0, "name": "spark-a", "address": None},
        {"rank": 1, "name": "spark-b", "address": "192.0.2.12", "user": "twinserve"},
    ]
    assert (found["start_order"], found["stop_order"]) == ([1, 0], "together")
    assert (found["restart_limit"], found["restart_window"], found["rails"], found["max_rails"]) == (
        5,
        3600,
        "auto",
        2,
    )
    assert (found["served_name"], found["comm"]) == ("GLM-5.3-Flash-EXL3", "roce")
    assert found["refit_append"] == ["--context", "{window}"]
    assert found["retry_env"] == {"TF_GLM_HC_SPLIT": "0", "TF_GLM_PREFILL_OVERLAP": "0"}


def test_a_retry_without_split_has_nothing_to_change_when_it_is_off() -> None:
    assert config(split=False)["retry_env"] == {}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, {"host": "127.0.0.1", "port": 18888, "bind": "127.0.0.1", "gateway": True}),
        ({"engine_port": 9}, {"host": "127.0.0.1", "port": 9, "bind": "127.0.0.1", "gateway": True}),
        (
            {"expose": "loopback"},
            {"host": "127.0.0.1", "port": 8888, "bind": "127.0.0.1", "gateway": False},
        ),
        ({"expose": "direct"}, {"host": "127.0.0.1", "port": 8888, "bind": "0.0.0.0", "gateway": False}),
        (
            {"expose": "direct", "api_host": "::"},
            {"host": "::1", "port": 8888, "bind": "::", "gateway": False},
        ),
        (
            {"expose": "direct", "api_host": "192.0.2.11", "api_port": 9000},
            {"host": "192.0.2.11", "port": 9000, "bind": "192.0.2.11", "gateway": False},
        ),
    ],
)
def test_the_api_is_probed_where_it_listens(raw: dict[str, Any], expected: dict[str, Any]) -> None:
    assert config(**raw)["api"] == expected


def test_what_the_user_says_about_a_nodes_link_reaches_the_supervisor() -> None:
    nodes = [{**NODES[0], "nccl_ib_hca": "=rocep1s0f1", "fabric_netdev": None}, NODES[1]]
    found = pair_config(plans(), settings(), PRODUCT.release("v1.1"), nodes)
    assert found["ranks"][0] == {"rank": 0, "name": "spark-a", "address": None, "nccl_ib_hca": "=rocep1s0f1"}


@pytest.mark.parametrize("release", PRODUCT.releases())
def test_l09_o09_no_rank_has_a_health_check_of_dockers_or_an_init(release: str) -> None:
    for plan in plans(release):
        assert not [word for word in plan["docker"] if word.startswith(("--health", "--init", "--restart"))]
