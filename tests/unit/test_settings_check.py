"""Settings: what is taken, what is refused and how it is said, what the release makes of what is open."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import disagreements
from engine_data import PRODUCT, faults, resolved, settings

TOKEN = "hf_secret"
REVISION = "a" * 40

TAKEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"parallel": "2"}, {"parallel": 2}),  # -e makes texts of everything
    ({"parallel": " 3 "}, {"parallel": 3}),
    ({"context": "0"}, {"context": 0}),
    ({"context": None}, {"context": 1048576}),  # F-04: nothing is not a value
    ({"context": ""}, {"context": 1048576}),
    ({"vision": "no"}, {"vision": False}),
    ({"vision": "False"}, {"vision": False}),
    ({"vision": 0}, {"vision": False}),
    ({"copy_code": "yes"}, {"copy_code": True}),
    ({"copy_code": True}, {"copy_code": True}),
    ({"kv_pool_gib": "12.50"}, {"kv_pool_gib": 12.5}),
    ({"kv_pool_gib": 11.0}, {"kv_pool_gib": 11}),
    ({"rails": "2"}, {"rails": 2}),
    ({"rails": 1}, {"rails": 1}),
    ({"rails": "auto"}, {"rails": "auto"}),
    ({}, {"fabric_manage": "auto"}),
    ({"fabric_manage": "auto"}, {"fabric_manage": "auto"}),
    ({"fabric_manage": True}, {"fabric_manage": True}),
    ({"fabric_manage": "true"}, {"fabric_manage": True}),  # -e fabric_manage=true
    ({"fabric_manage": "yes"}, {"fabric_manage": True}),
    ({"fabric_manage": False}, {"fabric_manage": False}),
    ({"fabric_manage": "False"}, {"fabric_manage": False}),
    ({"fabric_manage": 0}, {"fabric_manage": False}),
    ({"extra_args": "--title 'b c'"}, {"extra_args": ["--title", "b c"]}),
    ({"extra_args": ["--top-k", 5]}, {"extra_args": ["--top-k", "5"]}),
    (
        {"engine_env": {"A": True, "B": 12.50, "C": "", "D": None, "E": 0}},
        {"engine_env": {"A": "1", "B": "12.5", "E": "0"}},
    ),
    ({"fabric_subnets": "10.1.0.0/24, 10.2.0.0/24"}, {"fabric_subnets": ["10.1.0.0/24", "10.2.0.0/24"]}),
    ({"bench_concurrency": "1, 8"}, {"bench_concurrency": [1, 8]}),  # -e bench_concurrency=1,8
    ({"bench_concurrency": [1, "8"]}, {"bench_concurrency": [1, 8]}),
    ({"bench_concurrency": 4}, {"bench_concurrency": [4]}),
    ({}, {"bench_concurrency": None, "bench_requests": 80, "bench_api_key_given": False}),
    ({"drafter": "mtp"}, {"parallel": 1, "context": 1048576}),
    ({"kv": "bf16"}, {"context": 196608, "parallel": 4}),
    ({"kv": "bf16", "dense": "fp8"}, {"context": 163840}),
    ({"kv": "bf16", "dense": "fp8", "vision": False}, {"context": 196608}),
    ({"kv": "bf16", "drafter": "mtp", "dense": "bf16"}, {"context": 524288, "parallel": 1}),
    ({"expose": "direct"}, {"api_host": "0.0.0.0"}),
    ({"expose": "loopback"}, {"api_host": "127.0.0.1"}),
    ({}, {"expose": "gateway", "api_host": "0.0.0.0", "api_port": 8888, "engine_port": 18888}),
    ({"api_keys": {"me": "k" * 16}}, {"api_keys_given": True}),
    ({}, {"max_tokens": None, "kv_pool_gib": 11, "hf_token_given": False}),
    ({"hf_token": TOKEN}, {"hf_token_given": True}),
]


@pytest.mark.parametrize(("raw", "expected"), TAKEN)
def test_what_is_taken_becomes_typed(raw: dict[str, Any], expected: dict[str, Any]) -> None:
    result = settings(**raw)
    assert {name: result[name] for name in expected} == expected
    assert {name: type(result[name]) for name in expected} == {
        name: type(value) for name, value in expected.items()
    }


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"parallel": "banana"}, "parallel is 'banana': it takes a whole number from 1 to 4 (release v1.1)"),
    ({"parallel": 5}, "parallel is 5: it takes a whole number from 1 to 4 (release v1.1)"),
    ({"parallel": 2.5}, "parallel is 2.5: it takes a whole number from 1 to 4 (release v1.1)"),
    ({"parallel": True}, "parallel is true: it takes a whole number from 1 to 4 (release v1.1)"),
    ({"parallel": [2]}, "parallel is [2]: it takes a whole number from 1 to 4 (release v1.1)"),
    ({"context": "2000000"}, "context is 2000000: it takes a whole number from 0 to 1048576 (release v1.1)"),
    ({"context": "1e6"}, "context is '1e6': it takes a whole number from 0 to 1048576 (release v1.1)"),
    ({"context": -5}, "context is -5: it takes a whole number from 0 to 1048576 (release v1.1)"),
    ({"kv": "int8"}, "kv is 'int8': it takes fp8 or bf16"),
    ({"fabric_manage": "maybe"}, "fabric_manage is 'maybe': it takes auto, true or false"),
    ({"fabric_manage": 2}, "fabric_manage is 2: it takes auto, true or false"),
    ({"rails": True}, "rails is true: it takes auto, 1 or 2"),
    ({"drafter": False}, "drafter is false: it takes dflash2 or mtp"),
    ({"copy_max": 16}, "copy_max is 16: it takes a whole number from 1 to 15"),
    ({"kv_pool_gib": "nan"}, "kv_pool_gib is 'nan': it takes a number of 0.5 or more"),
    ({"memory_reserve_gib": 1.5}, "memory_reserve_gib is 1.5: it takes a number of 2 or more"),
    ({"split": 2}, "split is 0 or 1, not 2 (true, false, yes and no are taken too)"),  # K-01
    (
        {"draft_policy": "nc7"},
        "draft_policy is 'nc7': it takes a policy that begins with f, such as fnc7:0.3",
    ),
    (
        {"model_revision": 785500},
        "model_revision must be a quoted string of 40 hex digits, not 785500",
    ),  # K-01
    ({"model_revision": "main"}, "model_revision is 'main': it takes a quoted string of 40 hex digits"),
    ({"image_digest": "sha256:12"}, "image_digest is 'sha256:12': it takes sha256 and 64 hex digits"),
    ({"served_name": 5}, "served_name is 5: it takes a name without blanks"),
    ({"extra_args": "--a 'b"}, """extra_args is "--a 'b": no closing quotation"""),
    ({"engine_env": "A=1"}, "engine_env is 'A=1': it takes a map of names and values"),
    ({"engine_env": {"A": [1]}}, "engine_env: A is not a variable with a plain value"),
    (
        {"bench_concurrency": "1,x"},
        "bench_concurrency is '1,x': it takes a list, each a whole number from 1 to 1024",
    ),
    (
        {"bench_concurrency": [0]},
        "bench_concurrency is [0]: it takes a list, each a whole number from 1 to 1024",
    ),
    (
        {"bench_concurrency": [True]},
        "bench_concurrency is [True]: it takes a list, each a whole number from 1 to 1024",
    ),
    ({"bench_dataset": "speed.jsonl"}, "bench_dataset must be absolute, not 'speed.jsonl'"),
    (
        {"bench_api_key": TOKEN},
        "bench_api_key is for bench_url, which is unset: the engine itself asks for no key",
    ),
    (
        {"bench_dataset": "/srv/qualitative.jsonl", "bench_requests": 81},
        "bench_requests 81 is more than the 80 conversations of bench_dataset",
    ),
    (
        {"bench_url": "https://me:sesame@gate.example"},
        "bench_url has a login in it, which would stand in command lines and reports: give a key as "
        "bench_api_key, for another login open a tunnel",
    ),
    (
        {"bench_wheels": "https://me:sesame@wheels.example/"},
        "bench_wheels has a login in it, which would stand in command lines: bring the wheels to a folder on "
        "bench_host, and name that",
    ),
    ({"hf_token": 5}, "hf_token has a value that it does not take: it takes text (in quotes)"),
    ({"expose": "open"}, "expose is 'open': it takes gateway, loopback or direct"),
    ({"extra_args": "--port 9000"}, "extra_args: --port is managed; use api_port"),
    ({"engine_port": 8888}, "engine_port 8888 is api_port, which is the gateway's: set another"),
    (
        {"api_keys": {"me": "hunter2"}},
        "api_keys has a value that it does not take: it takes a map of names and keys, each key 16 to 200 "
        "letters, digits, - and _",
    ),
    (
        {"gateway_tls": "acme"},
        "gateway_tls acme needs gateway_names, the names that the service shall certify",
    ),
    (
        {"gateway_tls": "files", "gateway_certificate_key": "/a"},
        "gateway_tls files needs gateway_certificate, the path of a file on the head",
    ),
    ({"gateway_certificate": "/a"}, "gateway_certificate is for gateway_tls: files (gateway_tls is own_ca)"),
    (
        {"drafter": "mtp", "parallel": 4},
        "parallel 4 needs drafter dflash2 (mtp serves one request at a time)",
    ),  # K-03
    ({"vision": 0, "vision_urls": 1}, "vision_urls needs vision"),
    ({"max_tokens": 2000000}, "max_tokens 2000000 is larger than context 1048576"),
    (
        {"expose": "loopback", "api_host": "0.0.0.0"},
        "api_host 0.0.0.0 serves without authentication to every network of the head: "
        "set expose: direct to accept that",
    ),
    (
        {"accept_dflash2_license": False},
        "drafter dflash2 is under the licence CC BY-NC-ND 4.0, which forbids commercial use: set "
        "accept_dflash2_license: true to accept it, or drafter: mtp to do without (one request at a time)",
    ),
    (
        {"model_id": "me/mine"},
        "model_id me/mine needs its own model_revision: the release pins none for it",
    ),
    (
        {"drafter_id": "me/mine"},
        "drafter_id me/mine needs its own drafter_revision: the release pins none for it",
    ),
    (
        {"engine_env": {"NCCL_IB_HCA": "mlx5_0"}},
        "engine_env: NCCL_IB_HCA is managed; use nccl_ib_hca",
    ),  # K-08
    (
        {"engine_env": {"MASTER_ADDR": "192.0.2.11"}},
        "engine_env: MASTER_ADDR is managed; use fabric_netdev",
    ),
    ({"engine_env": {"TF_GLM_KV": "bf16"}}, "engine_env: TF_GLM_KV is managed; use kv"),
    (
        {"engine_env": {"TF_GLM_PREFILL_OVERLAP": "0"}},
        "engine_env: TF_GLM_PREFILL_OVERLAP is managed; use split",
    ),
    (
        {"engine_env": {"HF_TOKEN": "x"}},
        "engine_env: HF_TOKEN is managed; use hf_token, which never enters a serving container",
    ),
    (
        {"engine_env": {"TF_GLM_L2PF": "some"}},
        "engine_env: TF_GLM_L2PF is 'some': it takes 0, off, 1, bulk, lines or touch",
    ),
    ({"extra_args": "--rank 1"}, "extra_args: --rank is managed; use the ranks of the inventory"),
    ({"extra_args": ["--drafter=x"]}, "extra_args: --drafter is managed; use drafter"),
    ({"extra_args": "--context"}, "extra_args: --context has no value"),
    ({"extra_args": "--hos 0.0.0.0"}, "extra_args: write --hos in full (--host)"),
    ({"extra_args": "--mast=10.0.0.1"}, "extra_args: write --mast in full (--master or --master-port)"),
    ({"drafter": "mtp", "extra_args": "--par 2"}, "extra_args: write --par in full (--parallel)"),
    (
        {"extra_args": "--parallel 9"},
        "extra_args: parallel is 9: it takes a whole number from 1 to 4 (release v1.1)",
    ),
    (
        {"drafter": "mtp", "extra_args": "--parallel=2"},
        "parallel 2 needs drafter dflash2 (mtp serves one request at a time)",
    ),
    ({"extra_args": "--max-tokens 8000 --context 4096"}, "max_tokens 8000 is larger than context 4096"),
]


@pytest.mark.parametrize(("raw", "message"), REFUSED)
def test_what_is_refused_says_setting_value_and_what_is_taken(raw: dict[str, Any], message: str) -> None:
    assert faults(**raw) == [message]


def test_all_faults_are_told_together() -> None:
    assert faults(parallel="banana", context="2000000", kv="int8", accept_dflash2_license="maybe") == [
        "parallel is 'banana': it takes a whole number from 1 to 4 (release v1.1)",
        "context is 2000000: it takes a whole number from 0 to 1048576 (release v1.1)",
        "kv is 'int8': it takes fp8 or bf16",
        "accept_dflash2_license is 0 or 1, not 'maybe' (true, false, yes and no are taken too)",
    ]


WARNED: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    (
        {"context": 0},
        [
            "context 0 takes the largest window that fits: "
            "no room is left to keep the prompts of other conversations"
        ],
    ),
    (
        {"expose": "direct", "vision_urls": True},
        [
            "expose is direct: the API on 0.0.0.0:8888 serves everyone who reaches it, "
            "without authentication",
            "vision_urls lets API clients make the head fetch URLs",
        ],
    ),
    ({"memory_reserve_gib": 14.5}, []),
    (
        {"memory_reserve_gib": 10},
        ["memory_reserve_gib 10 is below 14.5 for parallel 4: the node may freeze"],  # K-05
    ),
    ({"expose": "direct", "api_host": "127.0.0.1"}, []),
    ({"vision_urls": True}, ["vision_urls lets API clients make the head fetch URLs"]),
    ({"expose": "loopback", "vision_urls": True}, []),
]


@pytest.mark.parametrize(("raw", "warnings"), WARNED)
def test_what_is_allowed_but_risky_is_warned_of(raw: dict[str, Any], warnings: list[str]) -> None:
    result = resolved(**raw)
    assert (result.faults, result.warnings) == ([], warnings)


EFFECTIVE: list[tuple[Any, dict[str, Any]]] = [
    ("--context 4096 --parallel=2", {"context": 4096, "parallel": 2}),
    ("--context 4096 --context 8192", {"context": 8192}),  # the engine takes the last
    ("--no-thinking --master-port 9000", {"thinking": False, "master_port": 9000}),
    (["--name", "mine"], {"served_name": "mine"}),
    ("--top-k 5", {"context": 1048576, "parallel": 4}),
]


@pytest.mark.parametrize(("extra_args", "expected"), EFFECTIVE)
def test_k08_extra_arguments_win_and_the_effective_value_is_known(
    extra_args: Any, expected: dict[str, Any]
) -> None:
    result = settings(extra_args=extra_args)
    assert {name: result["effective"][name] for name in expected} == expected
    assert (result["context"], result["parallel"]) == (1048576, 4)


def test_secrets_are_in_no_fact() -> None:
    facts = settings(hf_token=TOKEN, proxy_env={"https_proxy": f"http://u:{TOKEN}@proxy:3128"})
    assert TOKEN not in str(facts)
    assert (facts["hf_token_given"], facts["proxy_env_given"]) == (True, True)


DIFFERENT: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({}, {}, []),
    ({}, {"kv": "bf16"}, ["kv may not differ between ranks (worker sets bf16)"]),  # K-07
    ({"kv": "fp8"}, {"kv": "bf16"}, ["kv may not differ between ranks (worker sets bf16, head sets fp8)"]),
    (
        {"kv": "bf16"},
        {},
        ["kv may not differ between ranks (worker leaves it at its default, head sets bf16)"],
    ),
    ({}, {"split": False}, ["split may not differ between ranks (worker sets false)"]),
    ({}, {"kv": "fp8"}, []),  # says the default
    ({"parallel": 2}, {"parallel": "2"}, []),
    ({"hf_cache": "/a"}, {"hf_cache": "/b", "gpu_uuid": "GPU-1", "fabric_netdev": "e1"}, []),
    ({"hf_token": TOKEN}, {}, []),
]


@pytest.mark.parametrize(("head", "worker", "messages"), DIFFERENT)
def test_k07_what_both_ranks_need_alike_may_not_differ(
    head: dict[str, Any], worker: dict[str, Any], messages: list[str]
) -> None:
    found = disagreements(PRODUCT.specs, {"head": head, "worker": worker}, resolved().defaults)
    assert [fault.text for fault in found] == messages


@pytest.mark.parametrize("value", ["0", "3601", "-1", "long"])
def test_o14_the_wait_for_a_late_rank_has_a_range(value: str) -> None:
    wait = {"TF_ROCE_WAIT_S": value}
    assert faults("v1.3", engine_env=wait) == [f"engine_env: TF_ROCE_WAIT_S is 1 to 3600, not {value}"]
    assert faults("v1.3", engine_env={"TF_ROCE_WAIT_S": "3600"}) == []
