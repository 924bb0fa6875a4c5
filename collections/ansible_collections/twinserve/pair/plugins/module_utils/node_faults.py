"""What a node lacks to be a rank: pure, from its probe, settings and release. Each fault says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import (
    clock_sync,
    displays,
    gpu_choice,
    gpu_memory,
    lost_device,
    low_memory,
    model_need,
    private_folders,
    shared_weights,
)
from .listeners import Listener, taken
from .rails import rank_name
from .render import listening_ports
from .services import GATEWAY, node_runs

_GIB = float(1 << 30)


def faults(
    node: Mapping[str, Any],
    name: str,
    settings: Mapping[str, Any],
    release: Mapping[str, Any],
    rank: int,
    lists: model_need.Lists | None = None,
    image: Mapping[str, Any] | None = None,
) -> list[str]:
    """All faults of the node at once, so that they can be mended in one go.

    `image` is what the image needs here (module `image_need`), nothing without. `lists` is what the hub says
    of the snapshots that have to come, size by etag: only that is needed.
    """
    found = [
        *_unread(node),
        _rdma(node, rank),
        _python(node),
        _docker(node),
        _architecture(node, settings, release),
        _gpu(node),
        gpu_choice.choose(node, settings, release).fault,
        _host_key(node),
        *lost_device.faults(node),
        *displays.faults(node, settings),
        *_shared(node, settings, rank),
        _owner(node),
        *private_folders.faults(node, settings),
        *_disk(node, settings, release, lists or {}, image or {"gib": 0.0, "why": ""}),
    ]
    # A pair that serves has its memory: what counts before a start would stop a healthy one.
    if not rank_runs(node):
        found += [_memory(node, settings, release), *_ports(node, settings, rank)]
    return [f"{name}: {fault}" for fault in found if fault]


def warnings(
    node: Mapping[str, Any], rank: int, settings: Mapping[str, Any], release: Mapping[str, Any]
) -> list[str]:
    """What does not keep a node from being a rank, and is known to end badly."""
    scarce = None if rank_runs(node) else gpu_memory.scarce(node, settings, release)
    shared = rank == 0 and settings.get("worker_weights") == "nfs"
    exports = shared_weights.wider(node) if shared else []
    return [
        *_handover(node, rank),
        *_others(node, rank),
        *(f"warn {rank_name(rank)}: {one}" for one in (scarce, clock_sync.problem(node), *exports) if one),
    ]


def _handover(node: Mapping[str, Any], rank: int) -> list[str]:
    """Kernel handover (KHO) gave away memory that it does not own."""
    memory = node.get("memory") or {}
    total, free = memory.get("cma_total_kb"), memory.get("cma_free_kb")
    if total is None or free is None or free <= total:
        return []
    return [
        f"warn {rank_name(rank)}: CmaFree {free} kB exceeds CmaTotal {total} kB on {node['kernel']}: "
        "RDMA registration is known to fail; boot with kho=off or the 6.17 kernel"
    ]


def _others(node: Mapping[str, Any], rank: int) -> list[str]:
    """Other work on the GPU: there may be memory for it now, and none when it grows."""
    holders = node.get("gpu_holders") or []
    return [f"warn {rank_name(rank)}: the GPU is also used by {', '.join(holders)}"] if holders else []


def rank_runs(node: Mapping[str, Any]) -> bool:
    """Whether the rank's unit is active: then its memory is taken rightly, and its rails carry packets."""
    return node_runs(node, "twinserve-rank.service")


def _unread(node: Mapping[str, Any]) -> list[str]:
    """What could not be looked at, and is needed by all that follows."""
    needed = {"network": "network", "devices": "RDMA devices", "hf": "model cache", "memory": "memory"}
    errors = node["errors"]
    return [f"the {title} cannot be read: {errors[part]}" for part, title in needed.items() if part in errors]


def _rdma(node: Mapping[str, Any], rank: int) -> str | None:
    """The container gets these files; without them NCCL would go over TCP and say nothing."""
    if any(file.startswith("uverbs") for file in node["infiniband"] or []):
        return None
    return f"{rank_name(rank)} has no /dev/infiniband: RDMA modules not loaded"


def _ports(node: Mapping[str, Any], settings: Mapping[str, Any], rank: int) -> list[str]:
    """Ports that a start would find taken, after minutes of loading. The start itself looks again."""
    listeners = [Listener(**one) for one in node.get("listeners") or []]
    ports = listening_ports(rank, settings)
    if rank == 0 and settings["expose"] == "gateway" and not node_runs(node, GATEWAY):
        ports.append({"setting": "api_port", "host": settings["api_host"], "port": settings["api_port"]})
    return taken(ports, listeners)


def _host_key(node: Mapping[str, Any]) -> str | None:
    """The head knows its workers by this key and no other."""
    return None if node["host_key"] else "sshd has no host key: run ssh-keygen -A"


def _python(node: Mapping[str, Any]) -> str | None:
    version = str(node.get("python", ""))
    if tuple(int(part) for part in version.split(".")[:2]) >= (3, 11):
        return None
    return f"python3 is {version}, the runtime needs 3.11 or later (Ubuntu 24.04, Debian 12, DGX OS 7)"


def _docker(node: Mapping[str, Any]) -> str | None:
    if not node["tools"]["docker"]:
        return "docker is not installed: install docker.io or docker-ce and the NVIDIA container toolkit"
    if not node.get("docker"):
        return f"docker does not answer ({node['errors'].get('docker')}): systemctl status docker"
    return None


def _architecture(
    node: Mapping[str, Any], settings: Mapping[str, Any], release: Mapping[str, Any]
) -> str | None:
    wanted = release.get("architecture")
    if wanted and node["architecture"] != wanted:
        here, release_name = node["architecture"], settings["release"]
        return f"this machine is {here}, release {release_name} has an image for {wanted} only"
    return None


def _gpu(node: Mapping[str, Any]) -> str | None:
    if node.get("gpu") and node["gpu"]["names"]:
        return None
    reason = node["errors"].get("gpu", "nvidia-smi lists no GPU")
    if "mismatch" in reason.lower():
        return f"NVIDIA driver and libraries differ (upgrade without reboot): reboot it ({reason})"
    return f"no GPU: {reason}"


def _memory(node: Mapping[str, Any], settings: Mapping[str, Any], release: Mapping[str, Any]) -> str | None:
    memory = node.get("memory")
    if not memory:
        return None
    needed = low_memory.needed_gib(settings, release)
    return low_memory.shortage(memory["available_gib"], needed, node.get("gpu_holders") or [])


def _shared(node: Mapping[str, Any], settings: Mapping[str, Any], rank: int) -> list[str]:
    if settings.get("worker_weights") != "nfs":
        return []
    return shared_weights.faults(node, settings, rank == 0)


def _owner(node: Mapping[str, Any]) -> str | None:
    """A container or root wrote into the user's cache: every later download and copy would fail there."""
    hf, user = node.get("hf") or {}, node.get("user") or {}
    if hf.get("home") == shared_weights.HOME:
        return None  # the head's files, with its numbers
    strange = hf.get("strange") or {}
    whole = all(one["complete"] for one in (hf.get("snapshots") or {}).values())
    if not strange.get("count") or (whole and rank_runs(node)):
        return None
    return (
        f"{strange['count']} paths under {hf['home']} are not owned by {user['name']} "
        f"(first: {strange['first']}); fix with: sudo chown -R {user['name']} {hf['home']}"
    )


def _disk(
    node: Mapping[str, Any],
    settings: Mapping[str, Any],
    release: Mapping[str, Any],
    lists: model_need.Lists,
    image: Mapping[str, Any],
) -> list[str | None]:
    """Needs of image and weights, added up where both are on one filesystem. In GiB, as the settings are."""
    images, cache = node["disk"].get("images"), node["disk"].get("hf_cache")
    weights = model_need.weights(node, settings, release, lists)
    if images and cache and images["device"] == cache["device"]:
        if image["gib"] + weights.gib <= _free_gib(cache):
            return []
        return [
            f"{_free_gib(cache):.0f} GiB free on {cache['path']} for model cache and image store "
            f"together, {image['gib'] + weights.gib:.0f} GiB needed{_not_asked(weights)}"
        ]
    return [_image_room(images, image), _weights_room(cache, weights)]


def _image_room(store: Mapping[str, Any] | None, need: Mapping[str, Any]) -> str | None:
    if not store or need["gib"] <= _free_gib(store):
        return None
    return f"image store {store['path']} has {_free_gib(store):.0f} GiB free, {need['why']}"


def _weights_room(cache: Mapping[str, Any] | None, need: model_need.Need) -> str | None:
    if not cache or need.gib <= _free_gib(cache):
        return None
    free = f"{_free_gib(cache):.0f} GiB free"
    if need.unknown:
        return (
            f"only {free}; could not ask the Hub what is missing, so {need.gib:.0f} GiB is required "
            f"(model_min_free_gib) in {cache['path']}"
        )
    return f"model cache {cache['path']} has {free}, {need.gib:.0f} GiB needed for what is missing"


def _not_asked(need: model_need.Need) -> str:
    return "; could not ask the Hub what is missing (model_min_free_gib)" if need.unknown else ""


def _free_gib(place: Mapping[str, Any]) -> float:
    return float(place["free_gb"]) * 1e9 / _GIB
