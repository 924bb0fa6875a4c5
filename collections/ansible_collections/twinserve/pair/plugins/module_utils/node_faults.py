"""What a node lacks to be a rank: pure, from its probe, settings and release. Each fault says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def faults(
    node: Mapping[str, Any], name: str, settings: Mapping[str, Any], release: Mapping[str, Any]
) -> list[str]:
    """All faults of the node at once, so that they can be mended in one go."""
    found = [
        *_unread(node),
        _python(node),
        _docker(node),
        _architecture(node, settings, release),
        _gpu(node),
        _host_key(node),
    ]
    # A pair that serves has its memory and its files: what counts before a start would stop a healthy one.
    if not rank_runs(node):
        found += [_memory(node, settings, release), *_disk(node, settings)]
    return [f"{name}: {fault}" for fault in found if fault]


def rank_runs(node: Mapping[str, Any]) -> bool:
    """Whether the rank's unit is active: then its memory is taken rightly, and its rails carry packets."""
    rank = (node.get("services") or {}).get("twinserve-rank.service", {})
    return bool(rank.get("ActiveState") in ("active", "activating"))


def _unread(node: Mapping[str, Any]) -> list[str]:
    """What could not be looked at, and is needed by all that follows."""
    needed = {"network": "network", "devices": "RDMA devices", "hf": "model cache", "memory": "memory"}
    errors = node["errors"]
    return [f"the {title} cannot be read: {errors[part]}" for part, title in needed.items() if part in errors]


def _host_key(node: Mapping[str, Any]) -> str | None:
    """The head knows its workers by this key and no other."""
    return None if node["host_key"] else "sshd has no ed25519 host key: run ssh-keygen -A"


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
    needed = (release.get("memory") or {}).get("available_gib")
    memory = node.get("memory")
    if not needed or not memory or settings["allow_low_memory"] or memory["available_gib"] >= needed:
        return None
    holders = (node.get("gpu") or {}).get("processes") or {}
    used = f"; GPU processes: {', '.join(sorted(holders))}" if holders else ""
    return (f"{memory['available_gib']:.0f} GiB available, about {needed} needed{used}; stop other work, "
            "or set allow_low_memory: true")  # fmt: skip


def _disk(node: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str | None]:
    """Needs of image and weights, added up where both are on one filesystem. Figures in GB."""
    images, cache = node["disk"].get("images"), node["disk"].get("hf_cache")
    image_need = 0.0 if node.get("image") else float(settings["image_min_free_gib"]) * 1.073741824
    snapshots = (node.get("hf") or {}).get("snapshots") or {}
    whole = all(one["complete"] for one in snapshots.values())
    model_need = 0.0 if whole else float(settings["model_min_free_gib"]) * 1.073741824
    if images and cache and images["device"] == cache["device"]:
        need = image_need + model_need
        if need > cache["free_gb"]:
            return [
                f"{cache['free_gb']:.0f} GB free on {cache['path']} for model cache and image store "
                f"together, {need:.0f} GB needed"
            ]
        return []
    found: list[str | None] = []
    if images and image_need > images["free_gb"]:
        found.append(
            f"image store {images['path']} has {images['free_gb']:.0f} GB free, {image_need:.0f} GB needed"
        )
    if cache and model_need > cache["free_gb"]:
        found.append(
            f"model cache {cache['path']} has {cache['free_gb']:.0f} GB free, {model_need:.0f} GB needed"
        )
    return found
