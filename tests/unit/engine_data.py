"""The product's own engine data and a rendered pair, as the tests of settings and rendering need them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.twinserve.pair.plugins.module_utils.render import rank_plans
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import Resolved, resolve
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import Product, load_product
from ansible_collections.twinserve.pair.plugins.plugin_utils.host_settings import public

PRODUCT: Product = load_product("tensorfold")
LICENCE = {"accept_dflash2_license": True}

NODES: list[dict[str, Any]] = [
    {
        "name": "spark-a",
        "hf_cache": "/home/ops/.cache/huggingface",
        "kernel_cache": "/home/ops/.cache/tensorfold-glm53",
        "address": "192.0.2.11",
        "expected_link": [],
    },
    {
        "name": "spark-b",
        "hf_cache": "/home/ops/.cache/huggingface",
        "kernel_cache": "/home/ops/.cache/tensorfold-glm53",
        "address": "192.0.2.12",
        "expected_link": [],
    },
]
HEAD_RAILS = [
    {"netdev": "enp1s0f1np1", "hca": "rocep1s0f1", "address": "198.51.100.1", "gid_index": 3},
    {"netdev": "enP2p1s0f1np1", "hca": "roceP2p1s0f1", "address": "203.0.113.1", "gid_index": 3},
]
WORKER_RAILS = [
    {"netdev": "enp1s0f0np0", "hca": "rocep1s0f0", "address": "198.51.100.2", "gid_index": 5},
    {"netdev": "enP2p1s0f0np0", "hca": "roceP2p1s0f0", "address": "203.0.113.2", "gid_index": 5},
]
LINKS: list[dict[str, Any]] = [
    {"master": "198.51.100.1", "rails": rails, "append": [], "env": {}}
    for rails in (HEAD_RAILS, WORKER_RAILS)
]


def resolved(release: str = "v1.1", /, **raw: Any) -> Resolved:
    """The settings that `raw` gives under `release`; the drafter's licence is accepted."""
    return resolve(
        PRODUCT.specs, PRODUCT.rules, PRODUCT.release(release), {**LICENCE, **raw, "release": release}
    )


def settings(release: str = "v1.1", /, **raw: Any) -> dict[str, Any]:
    """The facts of a host with these settings, which must be right."""
    result = resolved(release, **raw)
    assert [fault.text for fault in result.faults] == []
    return public(result, PRODUCT.specs)


def plans(release: str = "v1.1", /, **raw: Any) -> list[dict[str, Any]]:
    """The plans of both ranks."""
    facts: list[Mapping[str, Any]] = [settings(release, **raw)] * 2
    return rank_plans(facts, PRODUCT.release(release), NODES, "pair1")


def faults(release: str = "v1.1", /, **raw: Any) -> list[str]:
    """What is wrong with these settings."""
    return [fault.text for fault in resolved(release, **raw).faults]
