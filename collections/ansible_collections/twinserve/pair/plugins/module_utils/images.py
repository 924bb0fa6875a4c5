"""Container images and the Docker store of a node, told apart by content.

`.Id` is the config digest under overlay2 and the manifest digest under containerd's store, so it never
serves to compare two nodes: the layers and the configuration do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .shell import CommandError, run

_RUNTIME_CONFIG = ("Env", "Entrypoint", "Cmd", "WorkingDir", "Labels")


@dataclass(frozen=True)
class Docker:
    """Docker Engine of a node: `store_path` is where image layers really go."""

    version: str
    store: str
    store_path: str
    architecture: str


@dataclass(frozen=True)
class Image:
    """A local image: `content` is the same on every node that has the same layers and configuration."""

    reference: str
    content: str
    architecture: str
    labels: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for facts."""
        return asdict(self)


def parse_docker_info(info: dict[str, Any]) -> Docker:
    """Read `docker info`: containerd's store keeps layers under containerd's root, not under Docker's."""
    containerd = any(
        "io.containerd.snapshotter" in str(value) for pair in info.get("DriverStatus") or [] for value in pair
    )
    return Docker(
        version=str(info.get("ServerVersion", "")),
        store="containerd" if containerd else str(info.get("Driver", "")),
        store_path="/var/lib/containerd" if containerd else str(info.get("DockerRootDir", "/var/lib/docker")),
        architecture=str(info.get("Architecture", "")),
    )


def parse_image(reference: str, inspected: dict[str, Any]) -> Image:
    """Read one entry of `docker image inspect`."""
    config = inspected.get("Config") or {}
    content = {
        "layers": (inspected.get("RootFS") or {}).get("Layers") or [],
        "config": {key: config.get(key) for key in _RUNTIME_CONFIG},
        "platform": [inspected.get("Os"), inspected.get("Architecture")],
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return Image(
        reference,
        f"sha256:{digest}",
        str(inspected.get("Architecture", "")),
        dict(config.get("Labels") or {}),
    )


def read_docker() -> Docker:
    """Ask the daemon; raise `CommandError` when it is missing or does not answer."""
    return parse_docker_info(json.loads(run(["docker", "info", "--format", "{{json .}}"], timeout=30)))


def read_image(reference: str) -> Image | None:
    """The image if it is here. By inspect: `docker pull` of a present image still needs the registry."""
    try:
        text = run(["docker", "image", "inspect", reference], timeout=30)
    except CommandError as error:
        if "no such image" in error.said.lower():
            return None
        raise
    return parse_image(reference, json.loads(text)[0])


def image_faults(
    nodes: Sequence[Mapping[str, Any]], names: Sequence[str], reference: str, absent_is_right: bool
) -> list[str]:
    """Nodes without the image, and nodes whose image has other content than the head's (C-20)."""
    images = {name: node.get("image") for name, node in zip(names, nodes, strict=True)}
    faults = []
    if not absent_is_right:
        lacking = [name for name, image in images.items() if not image]
        faults += [f"{name} does not have {reference}: run with -e prepare=auto" for name in lacking]
    head, *others = names
    for name in others:
        here, there = images[name], images[head]
        if here and there and here["content"] != there["content"]:
            faults.append(
                f"{name} has other content behind {reference} than {head}: "
                "remove it there (docker image rm), run again"
            )
    return faults
