"""What a node lacks to be a rank, each with what to do about it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.node_faults import (
    faults,
    rank_runs,
    warnings,
)

SETTINGS: dict[str, Any] = {
    "release": "v1.1",
    "allow_low_memory": False,
    "expose": "loopback",
    "api_host": "127.0.0.1",
    "api_port": 8888,
    "effective": {"master_port": 29551},
    "model_min_free_gib": 180,
}
MODEL, DRAFTER = "o/model@1", "o/drafter@2"
RELEASE = {
    "architecture": "arm64",
    "memory": {"available_gib": 110},
    "snapshots": [
        {"repo": "o/model", "revision": "1", "disk_gib": "${model_min_free_gib}"},
        {"repo": "o/drafter", "revision": "2", "disk_gib": 3},
    ],
}
GIB = 1 << 30
NEED = {"gib": 35.0, "why": "35 GiB needed (image_min_free_gib)", "comes": True}


def node(**changes: Any) -> dict[str, Any]:
    """A node that can be a rank, with changes."""
    whole: dict[str, Any] = {
        "architecture": "arm64",
        "python": "3.12.3",
        "tools": {"docker": True},
        "docker": {"store_path": "/var/lib/docker"},
        "gpu": {"names": ["NVIDIA GB10"], "processes": {}},
        "memory": {"available_gib": 118.4},
        "infiniband": ["rdma_cm", "uverbs0"],
        "kernel": "7.0.0-1019-nvidia",
        "host_key": "ssh-ed25519 K",
        "hf": {"home": "/w", "snapshots": {MODEL: {"complete": True}, DRAFTER: {"complete": True}}},
        "user": {"name": "bob"},
        "disk": {
            "images": {"path": "/var/lib/docker", "device": 1, "free_gb": 500.0},
            "hf_cache": {"path": "/w", "device": 2, "free_gb": 500.0},
        },
        "services": {},
        "errors": {},
    }
    return whole | changes


def found(settings: dict[str, Any] | None = None, **changes: Any) -> list[str]:
    need = changes.pop("image", None)
    return faults(node(**changes), "worker", SETTINGS | (settings or {}), RELEASE, 0, image=need)


def free(images: float, cache: float, shared: bool = False) -> dict[str, Any]:
    """What is free, in GiB."""
    store = {"path": "/var/lib/containerd", "device": 1, "free_gb": images * GIB / 1e9}
    own = {"path": "/w", "device": 1 if shared else 2, "free_gb": cache * GIB / 1e9}
    return {"images": store, "hf_cache": own}


def cached(model: dict[str, Any] | None = None, drafter: dict[str, Any] | None = None) -> dict[str, Any]:
    """A cache that lacks what is given, with what is there of it."""
    states = {MODEL: model, DRAFTER: drafter}
    return {
        "home": "/w",
        "snapshots": {
            name: {"complete": True}
            if state is None
            else {"complete": False, "here": 0, "missing": None} | state
            for name, state in states.items()
        },
    }


EMPTY_CACHE = cached({}, {})
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
        ({"host_key": None}, "sshd has no host key: run ssh-keygen -A"),
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


@pytest.mark.parametrize("files", [[], None, ["rdma_cm"]])
def test_f22_without_the_devices_files_a_rank_would_go_over_tcp(files: list[str] | None) -> None:
    (fault,) = faults(node(infiniband=files), "spark-b", SETTINGS, RELEASE, 1)
    assert fault == "spark-b: worker has no /dev/infiniband: RDMA modules not loaded"
    assert found(infiniband=["uverbs0"]) == []


@pytest.mark.parametrize(
    ("total", "free", "warned"),
    [
        (0, 940604, True),
        (940603, 940604, True),
        (940604, 940604, False),
        (None, None, False),
    ],
)
def test_f21_more_contiguous_memory_free_than_there_is(
    total: int | None, free: int | None, warned: bool
) -> None:
    memory = {"available_gib": 118.4, "cma_total_kb": total, "cma_free_kb": free}
    assert (
        warnings(node(memory=memory), 1, SETTINGS, RELEASE)
        == [
            f"warn worker: CmaFree {free} kB exceeds CmaTotal {total} kB on 7.0.0-1019-nvidia: "
            "RDMA registration is known to fail; boot with kho=off or the 6.17 kernel"
        ]
        * warned
    )
    assert found(memory=memory) == [], "a warning is no fault"
    assert warnings(node(memory=None), 1, SETTINGS, RELEASE) == []


def test_l15_too_little_memory_is_told_with_who_holds_it() -> None:
    assert found(memory={"available_gib": 71.2}, gpu_holders=['container "comfy" (GPU)']) == [
        'worker: 71 GiB available, about 110 needed; in use by container "comfy" (GPU); stop other work, '
        "or set allow_low_memory: true"
    ]
    assert found({"allow_low_memory": True}, memory={"available_gib": 71.2}) == []
    assert found(memory={"available_gib": 110.0}) == []


def test_l15_other_work_on_the_gpu_is_warned_of_while_there_is_memory_for_it() -> None:
    other: dict[str, Any] = {"gpu_holders": ['container "comfy" (GPU)', "ollama (pid 9)"]}
    assert warnings(node(**other), 1, SETTINGS, RELEASE) == [
        'warn worker: the GPU is also used by container "comfy" (GPU), ollama (pid 9)'
    ]
    assert found(**other) == []
    assert warnings(node(gpu_holders=[]), 1, SETTINGS, RELEASE) == []


@pytest.mark.parametrize("state", ["active", "activating"])
def test_l15_a_pair_that_serves_has_its_memory(state: str) -> None:
    up = {"twinserve-rank.service": {"ActiveState": state}}
    assert found(memory={"available_gib": 9.0}, disk=free(1, 1), services=up) == []
    assert rank_runs({"services": {"twinserve-rank.service": {"ActiveState": "failed"}}}) is False
    assert rank_runs({"services": None}) is False


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"image": NEED, "disk": free(12, 500)},
            ["image store /var/lib/containerd has 12 GiB free, 35 GiB needed (image_min_free_gib)"],
        ),
        ({"image": NEED, "disk": free(35, 500)}, []),
        # Another release is prepared while this one serves.
        (
            {"image": NEED, "disk": free(12, 500), "services": UP},
            ["image store /var/lib/containerd has 12 GiB free, 35 GiB needed (image_min_free_gib)"],
        ),
        ({"disk": free(12, 500)}, []),
        (
            {"hf": EMPTY_CACHE, "disk": free(500, 179)},
            [
                "only 179 GiB free; could not ask the Hub what is missing, so 180 GiB is required "
                "(model_min_free_gib) in /w"
            ],
        ),
        ({"hf": EMPTY_CACHE, "disk": free(500, 180.1)}, []),
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
            {"image": NEED, "hf": EMPTY_CACHE, "disk": free(200, 200, shared=True)},
            [
                "200 GiB free on /w for model cache and image store together, 215 GiB needed; "
                "could not ask the Hub what is missing (model_min_free_gib)"
            ],
        ),
        ({"image": NEED, "hf": EMPTY_CACHE, "disk": free(215.1, 215.1, shared=True)}, []),
        ({"image": NEED, "disk": free(40, 40, shared=True)}, []),
    ],
)
def test_c05_one_filesystem_must_hold_both(changes: dict[str, Any], said: list[str]) -> None:
    assert found(**changes) == [f"worker: {one}" for one in said]


@pytest.mark.parametrize(
    ("cache", "enough", "too_little"),
    [
        (cached(None, {}), 3.1, 2),  # only the drafter is missing
        (cached({"here": 150 * GIB}), 30.1, 29),  # a download that was cut off
        (cached({"here": 200 * GIB}), 0, None),
        # The hub's list is there: exact, and room to work.
        (cached({"here": 150 * GIB, "missing": 14 * GIB}), 19.1, 18),
        (cached({"missing": 14 * GIB}, {"missing": GIB}), 20.1, 19),
        (cached({"missing": 14 * GIB}, {}), 22.1, 21),
        (cached({"here": 0, "missing": 0}), 5.1, 4),  # every blob is there by another revision
    ],
)
def test_m04_what_is_there_is_not_asked_for_again(
    cache: dict[str, Any], enough: float, too_little: float | None
) -> None:
    assert found(hf=cache, disk=free(0, enough)) == []
    if too_little is not None:
        assert len(found(hf=cache, disk=free(0, too_little))) == 1


def test_m04_the_hubs_list_says_what_is_missing_to_the_byte() -> None:
    lists = {MODEL: {"a": 100 * GIB, "b": 60 * GIB}}
    blobs = {"a": 100 * GIB, "b.0a1b2c3d.incomplete": 50 * GIB, "of another revision": 500 * GIB}
    cache = cached({"blobs": blobs})
    for free_gib, said in (
        (15.1, []),
        (14, ["worker: model cache /w has 14 GiB free, 15 GiB needed for what is missing"]),
    ):
        assert faults(node(hf=cache, disk=free(0, free_gib)), "worker", SETTINGS, RELEASE, 0, lists) == said


def test_m04_a_node_that_has_every_blob_needs_room_to_work_only() -> None:
    lists, cache = {MODEL: {"a": 160 * GIB}}, cached({"blobs": {"a": 160 * GIB}})
    assert faults(node(hf=cache, disk=free(0, 20)), "worker", SETTINGS, RELEASE, 0, lists) == []


def test_m04_without_the_hubs_answer_the_fixed_size_is_asked_for() -> None:
    assert found(hf=cached({}), disk=free(500, 20)) == [
        "worker: only 20 GiB free; could not ask the Hub what is missing, so 180 GiB is required "
        "(model_min_free_gib) in /w"
    ]


def test_m04_a_catalogue_that_does_not_say_how_large_gets_the_setting() -> None:
    release = {"snapshots": [{"repo": "o/model", "revision": "1"}]}
    assert len(faults(node(hf=cached({}), disk=free(0, 179)), "worker", SETTINGS, release, 0)) == 1
    assert faults(node(hf=cached({}), disk=free(0, 180)), "worker", SETTINGS, release, 0) == []


@pytest.mark.parametrize(
    ("cache", "services", "refused"),
    [(cached(), {}, True), (cached({}), UP, True), (cached(), UP, False)],
)
def test_m07_files_of_others_in_the_cache(cache: dict[str, Any], services: Any, refused: bool) -> None:
    strange = {"count": 37, "first": "/w/hub/models--o--model/blobs"}
    assert (
        found(hf={**cache, "strange": strange}, services=services)
        == [
            "worker: 37 paths under /w are not owned by bob (first: /w/hub/models--o--model/blobs); "
            "fix with: sudo chown -R bob /w"
        ]
        * refused
    )


def test_c16_m19_weights_over_nfs_ask_for_what_they_need() -> None:
    nfs = {"worker_weights": "nfs"}
    worker = node(nfs={"server": False, "client": False}, kernel_cache="/var/lib/twinserve/weights/k")
    assert faults(worker, "spark-b", SETTINGS | nfs, RELEASE, 1) == [
        "spark-b: cannot mount NFS: apt install nfs-common (kernel module nfsv4), or worker_weights: copy",
        "spark-b: kernel_cache is inside the NFS weights mount",
    ]
    assert found(nfs, nfs={"server": True}) == []
    assert found({"worker_weights": "copy"}, nfs={"server": False}) == []


def test_weights_that_are_mounted_take_no_room_and_have_the_heads_numbers() -> None:
    mounted = {**EMPTY_CACHE, "home": "/var/lib/twinserve/weights", "strange": {"count": 9, "first": "/x"}}
    assert found(hf=mounted, disk=free(0, 0)) == []


def test_all_faults_are_told_at_once() -> None:
    many = found(
        tools={"docker": False},
        docker=None,
        gpu={"names": []},
        memory={"available_gib": 1.0},
        disk=free(1, 1),
        image=NEED,
        hf=EMPTY_CACHE,
    )
    assert len(many) == 5


def test_a_port_that_another_server_has_is_refused_on_the_head_before_a_start() -> None:
    foreign = [{"address": "0.0.0.0", "port": 8888, "process": "llama-server", "pid": 4711}]
    said = "head: port 8888 is taken by llama-server (pid 4711): stop it, or set another api_port"
    assert faults(node(listeners=foreign), "head", SETTINGS, RELEASE, 0) == [said]
    assert faults(node(listeners=foreign), "worker", SETTINGS, RELEASE, 1) == []
    assert faults(node(listeners=foreign, services=UP), "head", SETTINGS, RELEASE, 0) == []


def test_the_gateways_port_may_be_taken_by_the_gateway_alone() -> None:
    settings = {**SETTINGS, "expose": "gateway", "api_host": "0.0.0.0", "engine_port": 18888}
    there = [{"address": "0.0.0.0", "port": 8888, "process": "nginx", "pid": 4711}]
    own = {"twinserve-gateway.service": {"ActiveState": "active"}}
    said = "head: port 8888 is taken by nginx (pid 4711): stop it, or set another api_port"
    assert faults(node(listeners=there), "head", settings, RELEASE, 0) == [said]
    assert faults(node(listeners=there, services=own), "head", settings, RELEASE, 0) == []
    assert faults(node(listeners=None), "head", SETTINGS, RELEASE, 0) == []
