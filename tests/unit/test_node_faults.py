"""What a node lacks to be a rank, each with what to do about it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.node_faults import faults, rank_runs

SETTINGS: dict[str, Any] = {
    "release": "v1.1",
    "allow_low_memory": False,
    "image_min_free_gib": 35,
    "model_min_free_gib": 180,
}
RELEASE = {"architecture": "arm64", "memory": {"available_gib": 110}}


def node(**changes: Any) -> dict[str, Any]:
    """A node that can be a rank, with changes."""
    whole: dict[str, Any] = {
        "architecture": "arm64",
        "python": "3.12.3",
        "tools": {"docker": True},
        "docker": {"store_path": "/var/lib/docker"},
        "gpu": {"names": ["NVIDIA GB10"], "processes": {}},
        "memory": {"available_gib": 118.4},
        "host_key": "ssh-ed25519 K",
        "image": {"content": "sha256:1"},
        "hf": {"home": "/w", "snapshots": {"m@1": {"complete": True}}},
        "disk": {
            "images": {"path": "/var/lib/docker", "device": 1, "free_gb": 500.0},
            "hf_cache": {"path": "/w", "device": 2, "free_gb": 500.0},
        },
        "services": {},
        "errors": {},
    }
    return whole | changes


def found(settings: dict[str, Any] | None = None, **changes: Any) -> list[str]:
    return faults(node(**changes), "worker", SETTINGS | (settings or {}), RELEASE)


def free(images: float, cache: float, shared: bool = False) -> dict[str, Any]:
    store = {"path": "/var/lib/containerd", "device": 1, "free_gb": images}
    return {"images": store, "hf_cache": {"path": "/w", "device": 1 if shared else 2, "free_gb": cache}}


EMPTY_CACHE = {"home": "/w", "snapshots": {"m@1": {"complete": False}, "d@2": {"complete": True}}}
UP = {"twinserve-rank.service": {"ActiveState": "active"}}


def test_a_sound_node_has_no_fault() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"python": "3.10.12"}, "python3 is 3.10.12, the runtime needs 3.11 or later"),
        ({"tools": {"docker": False}, "docker": None}, "docker is not installed: install docker.io"),
        (
            {"docker": None, "errors": {"docker": "docker info: no socket (exit 1)"}},
            "docker does not answer (docker info: no socket (exit 1)): systemctl status docker",
        ),
        ({"architecture": "amd64"}, "this machine is amd64, release v1.1 has an image for arm64 only"),
        (
            {"gpu": None, "errors": {"gpu": "nvidia-smi is not installed"}},
            "no GPU: nvidia-smi is not installed",
        ),
        ({"gpu": {"names": []}}, "no GPU: nvidia-smi lists no GPU"),
        ({"host_key": None}, "sshd has no ed25519 host key: run ssh-keygen -A"),
        (
            {"network": None, "errors": {"network": "ip is not installed"}},
            "the network cannot be read: ip is",
        ),
        ({"hf": None, "errors": {"hf": "no such user"}}, "the model cache cannot be read: no such user"),
    ],
)
def test_each_fault_is_named_with_its_cure(changes: dict[str, Any], said: str) -> None:
    (fault,) = found(**changes)
    assert fault.startswith(f"worker: {said}")


def test_c10_a_driver_out_of_step_needs_a_reboot() -> None:
    reason = "nvidia-smi: Failed to initialize NVML: Driver/library version mismatch NVML library version: 5"
    (fault,) = found(gpu=None, errors={"gpu": reason})
    assert fault.startswith("worker: NVIDIA driver and libraries differ (upgrade without reboot): reboot it")


def test_l15_too_little_memory_is_told_with_who_holds_it() -> None:
    holding = {"names": ["NVIDIA GB10"], "processes": {"4711": 40.0, "12": None}}
    assert found(memory={"available_gib": 71.2}, gpu=holding) == [
        "worker: 71 GiB available, about 110 needed; GPU processes: 12, 4711; stop other work, "
        "or set allow_low_memory: true"
    ]
    assert found({"allow_low_memory": True}, memory={"available_gib": 71.2}) == []
    assert found(memory={"available_gib": 110.0}) == []


@pytest.mark.parametrize("state", ["active", "activating"])
def test_l15_a_pair_that_serves_has_its_memory_and_its_files(state: str) -> None:
    up = {"twinserve-rank.service": {"ActiveState": state}}
    assert found(memory={"available_gib": 9.0}, image=None, disk=free(1, 1), services=up) == []
    assert rank_runs({"services": {"twinserve-rank.service": {"ActiveState": "failed"}}}) is False
    assert rank_runs({"services": None}) is False


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"image": None, "disk": free(12, 500)},
            ["image store /var/lib/containerd has 12 GB free, 38 GB needed"],
        ),
        ({"image": None, "disk": free(38, 500)}, []),
        ({"disk": free(12, 500)}, []),
        ({"hf": EMPTY_CACHE, "disk": free(500, 190)}, ["model cache /w has 190 GB free, 193 GB needed"]),
        ({"hf": EMPTY_CACHE, "disk": free(500, 194)}, []),
        ({"disk": {}}, []),
    ],
)
def test_c04_space_is_looked_for_where_layers_and_weights_really_go(
    changes: dict[str, Any], said: list[str]
) -> None:
    assert found(**changes) == [f"worker: {one}" for one in said]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"image": None, "hf": EMPTY_CACHE, "disk": free(200, 200, shared=True)},
            ["200 GB free on /w for model cache and image store together, 231 GB needed"],
        ),
        ({"image": None, "hf": EMPTY_CACHE, "disk": free(232, 232, shared=True)}, []),
        ({"image": None, "disk": free(40, 40, shared=True)}, []),
    ],
)
def test_c05_one_filesystem_must_hold_both(changes: dict[str, Any], said: list[str]) -> None:
    assert found(**changes) == [f"worker: {one}" for one in said]


def test_all_faults_are_told_at_once() -> None:
    many = found(
        tools={"docker": False},
        docker=None,
        gpu={"names": []},
        memory={"available_gib": 1.0},
        disk=free(1, 1),
        image=None,
        hf=EMPTY_CACHE,
    )
    assert len(many) == 5
