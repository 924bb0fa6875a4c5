"""Settings that take from a node's one memory: shared memory, and what the driver reserves for displays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake_sysfs as fake
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.displays import faults as display_faults
from ansible_collections.twinserve.pair.plugins.module_utils.displays import read_outputs
from engine_data import faults, plans, resolved

HDMI = "card0-HDMI-A-1"


@pytest.mark.parametrize(
    ("size", "warned"),
    [
        ("16g", False),
        ("17g", True),
        ("64g", True),
        ("128g", True),
        ("512m", False),
        ("9999m", False),
        ("16384m", False),
        ("16385m", True),
        ("16390m", True),
        ("16400m", True),
        ("17000m", True),
        ("20480m", True),
        ("32768m", True),
        ("65536m", True),
        ("100000m", True),
    ],
)
def test_l18_shared_memory_above_16_gib_is_warned_of(size: str, warned: bool) -> None:
    found = resolved(shm_size=size)
    assert [fault.text for fault in found.faults] == []
    said = f"shm_size {size} can take half of the unified memory"
    assert (said in found.warnings) is warned


def test_l18_the_size_reaches_docker_and_is_16g_by_default() -> None:
    for raw, size in (({}, "16g"), ({"shm_size": "8g"}, "8g")):
        words = plans(**raw)[0]["docker"]
        assert words[words.index("--shm-size") + 1] == size
    assert faults(shm_size="64 GB") == ["shm_size is '64 GB': it takes a size such as 16g or 512m"]


@pytest.mark.parametrize(
    ("release", "value", "said"),
    [
        ("v1.6", 1800, ["display_kv_mib must be a multiple of 16 up to 2032"]),
        ("v1.6", 1808, []),
        ("v1.10", "2032", []),
        ("v1.6", 2048, ["display_kv_mib is 2048: it takes a whole number from 0 to 2032 (release v1.6)"]),
        ("v1.5", 1808, ["display_kv_mib is 1808: it takes only 0 (release v1.5)"]),
        ("v1.1", 0, []),
    ],
)
def test_l19_the_reservation_is_in_steps_and_only_for_releases_that_have_it(
    release: str, value: int | str, said: list[str]
) -> None:
    assert faults(release, display_kv_mib=value) == said


def test_l19_the_reservation_reaches_both_ranks_and_nothing_is_passed_without_one() -> None:
    given = plans("v1.6", display_kv_mib=1808)
    assert [plan["env"]["TF_GLM_DISPLAY_KV_MIB"] for plan in given] == ["1808", "1808"]
    assert "TF_GLM_DISPLAY_KV_MIB" not in plans("v1.6")[0]["env"]


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ({HDMI: "connected"}, [f"{HDMI} has a display connected; set display_kv_mib: 0"]),
        ({HDMI: "disconnected", "card0-DP-1": "disconnected"}, []),
        ({}, ["/sys/class/drm shows no outputs (nvidia_drm modeset=0); set display_kv_mib: 0"]),
        (None, []),
    ],
)
def test_l19_a_monitor_or_a_driver_without_modeset_is_refused(
    outputs: dict[str, str] | None, said: list[str]
) -> None:
    node: dict[str, Any] = {"displays": outputs}
    assert display_faults(node, {"display_kv_mib": 1808}) == said
    assert display_faults(node, {"display_kv_mib": 0}) == []
    assert display_faults(node, {}) == [], "an engine without this setting"


def test_l19_outputs_are_those_of_the_drivers_own_card(tmp_path: Path) -> None:
    assert read_outputs(tmp_path) == {}
    drm = tmp_path / "sys/class/drm"
    fake.put(drm / f"{HDMI}/status", "connected")
    fake.put(drm / "card1-VGA-1/status", "connected")
    fake.put(drm / "renderD128/dev", "226:128")
    (drm / "card1/device").mkdir(parents=True)
    (drm / "card1/device/driver").symlink_to("../../bus/pci/drivers/ast")
    assert read_outputs(tmp_path) == {HDMI: "connected"}
