"""System B as the tests need it: the product's own data of vLLM on two DGX Stations, and a rendered pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.twinserve.pair.plugins.module_utils.render import pair_config, rank_plans
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import Resolved, resolve
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import Product, load_product
from ansible_collections.twinserve.pair.plugins.plugin_utils.host_settings import public

PRODUCT: Product = load_product("vllm")
RELEASE = "glm-5.3-nvfp4"
LICENCE = {"accept_nvidia_open_model_license": True}

NODES: list[dict[str, Any]] = [
    {
        "name": name,
        "hf_cache": "/home/ops/.cache/huggingface",
        "kernel_cache": "/home/ops/.cache/twinserve",
        "gpu_uuid": uuid,
        "address": address,
        "expected_link": [],
    }
    for name, uuid, address in (
        ("station-a", "GPU-aaaa", "192.0.2.21"),
        ("station-b", "GPU-bbbb", "192.0.2.22"),
    )
]
# Names and indexes differ on purpose: nothing of one rank's link may reach the other.
LINKS: list[dict[str, Any]] = [
    {"master": "198.51.100.1", "rails": [rail], "append": [], "env": {}}
    for rail in (
        {"netdev": "enP1p3s0f0np0", "hca": "mlx5_1", "address": "198.51.100.1", "gid_index": 3},
        {"netdev": "enP9p3s0f0np0", "hca": "mlx5_0", "address": "198.51.100.2", "gid_index": 5},
    )
]


def resolved(**raw: Any) -> Resolved:
    """The settings that `raw` gives; the licences are accepted."""
    given = {**LICENCE, **raw, "engine": "vllm", "release": RELEASE}
    return resolve(PRODUCT.specs, PRODUCT.rules, PRODUCT.release(RELEASE), given)


def settings(**raw: Any) -> dict[str, Any]:
    """The facts of a host with these settings, which must be right."""
    result = resolved(**raw)
    assert [fault.text for fault in result.faults] == []
    return public(result, PRODUCT.specs)


def plans(**raw: Any) -> list[dict[str, Any]]:
    """The plans of both ranks."""
    facts: list[Mapping[str, Any]] = [settings(**raw)] * 2
    return rank_plans(facts, PRODUCT.release(RELEASE), NODES, "pair1")


def config(**raw: Any) -> dict[str, Any]:
    """The supervisor's configuration."""
    return pair_config(plans(**raw), settings(**raw), PRODUCT.release(RELEASE), NODES)


def faults(**raw: Any) -> list[str]:
    """What is wrong with these settings."""
    return [fault.text for fault in resolved(**raw).faults]
