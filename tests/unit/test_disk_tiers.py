"""Prompts that are kept on disk: what goes together, what a stop needs, and who may read them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.catalogue import merged
from ansible_collections.twinserve.pair.plugins.module_utils.render import rank_plans
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import resolve
from ansible_collections.twinserve.pair.plugins.plugin_utils.host_settings import public
from engine_data import LICENCE, NODES, PRODUCT, faults, plans, settings

# As a site writes a release file for an engine that has such a tier.
TIERED = merged(
    PRODUCT.release("v1.10"),
    {"release": "mine", "allowed": {"kv_tier_gib": {"max": 1000}, "parallel": {"max": 8}}},
)


def tiered(**raw: Any) -> tuple[dict[str, Any], list[str]]:
    """The settings of a release with all tiers, and what is wrong with them."""
    found = resolve(PRODUCT.specs, PRODUCT.rules, TIERED, {**LICENCE, **raw, "release": "mine"})
    return public(found, PRODUCT.specs), [fault.text for fault in found.faults]


@pytest.mark.parametrize(
    ("raw", "messages"),
    [
        ({"spill_gib": 64, "kv_tier_gib": 200}, ["kv_tier_gib and spill_gib exclude each other"]),
        ({"kv_tier_gib": 200, "parallel": 1}, ["kv_tier_gib needs parallel above 1"]),
        ({"kv_tier_gib": 200, "drafter": "mtp"}, ["kv_tier_gib needs parallel above 1"]),
        ({"kv_tier_dir": "cache/kv"}, ["kv_tier_dir must be an absolute path, not 'cache/kv'"]),
        ({"kv_tier_gib": 200}, []),
        ({"spill_gib": "64"}, []),
    ],
)
def test_k04_tiers_that_do_not_go_together_are_refused(raw: dict[str, Any], messages: list[str]) -> None:
    assert tiered(**raw)[1] == messages


@pytest.mark.parametrize(
    ("release", "raw", "message"),
    [
        ("v1.1", {"spill_gib": 64}, "spill_gib is 64: it takes only 0 (release v1.1)"),
        ("v1.8", {"spill_gib": 64}, "spill_gib is 64: it takes only 0 (release v1.8)"),
        ("v1.10", {"kv_tier_gib": 200}, "kv_tier_gib is 200: it takes only 0 (release v1.10)"),
    ],
)
def test_k04_a_release_without_the_tier_refuses_it(release: str, raw: dict[str, Any], message: str) -> None:
    assert faults(release, **raw) == [message]


def test_k04_the_folder_of_a_tier_is_private_and_given_to_both_ranks() -> None:
    for plan in plans("v1.9", spill_gib=64, spill_dir="/mnt/spill"):
        assert plan["folders"] == ["/mnt/spill"]
        assert plan["mounts"][-1] == {"source": "/mnt/spill", "target": "/spill", "read_only": False}
        at = plan["command"].index("--spill-gib")
        assert plan["command"][at : at + 4] == ["--spill-gib", "64", "--snapshot-dir", "/spill"]
        assert plan["env"]["TF_SPILL_FLUSH_S"] == "60"
    own = tiered(kv_tier_gib=200)[0]
    for plan in rank_plans([own, own], TIERED, NODES, "pair1"):
        assert plan["folders"] == ["/var/cache/tensorfold/kv"]
        assert plan["mounts"][-1]["target"] == "/kv_tier"
    for plan in plans("v1.9"):
        assert (plan["folders"], len(plan["mounts"])) == ([], 2)
        assert "TF_SPILL_FLUSH_S" not in plan["env"]


def test_o09_a_stop_gets_the_time_that_the_flush_needs() -> None:
    assert settings("v1.9")["stop_timeout"] == 30
    assert settings("v1.9", spill_gib=64)["stop_timeout"] == 90
    assert faults("v1.9", spill_gib=64, stop_timeout=30) == [
        "stop_timeout 30 is shorter than spill_flush_s 60 + 30"
    ]
    assert faults("v1.9", spill_gib=64, spill_flush_s=120) == [
        "stop_timeout 90 is shorter than spill_flush_s 120 + 30"
    ]
    assert faults("v1.9", spill_gib=64, spill_flush_s=120, stop_timeout=150) == []
