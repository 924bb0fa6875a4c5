"""Container images and the Docker store of a node, told apart by content.

`.Id` is the config digest under overlay2 and the manifest digest under containerd's store, so it never
serves to compare two nodes: the layers and the configuration do.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from .shell import CommandError, run

_RUNTIME_CONFIG = ("Env", "Entrypoint", "Cmd", "WorkingDir", "Labels")
_LOGINS = Path("/root/.docker/config.json")  # pulls run as root
_CONTAINERD = Path("/etc/containerd/config.toml")
_ONE_PLATFORM = 28  # Docker of API 1.48, whose `docker save` takes --platform


@dataclass(frozen=True)
class Docker:
    """Docker Engine of a node: `store_path` is where image layers really go.

    `one_platform`: it can save one platform of an image. `logins`: registries with a stored login of root.
    """

    version: str
    store: str
    store_path: str
    architecture: str
    one_platform: bool = False
    logins: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Image:
    """A local image: `content` is the same on every node that has the same layers and configuration.

    `size` is in bytes, as the node's store counts it.
    """

    reference: str
    content: str
    architecture: str
    labels: dict[str, str] = field(default_factory=dict)
    size: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain data for facts."""
        return asdict(self)


def parse_docker_info(info: dict[str, Any], config: Path = _CONTAINERD) -> Docker:
    """Read `docker info`: containerd's store keeps layers under containerd's root, not under Docker's."""
    root = str(info.get("DockerRootDir", "/var/lib/docker"))
    containerd = any(
        "io.containerd.snapshotter" in str(value) for pair in info.get("DriverStatus") or [] for value in pair
    )
    server = str(info.get("ServerVersion", ""))
    client = str((info.get("ClientInfo") or {}).get("Version") or server)
    return Docker(
        version=server,
        store="containerd" if containerd else str(info.get("Driver", "")),
        store_path=_containerd_root(info, root, config) if containerd else root,
        architecture=str(info.get("Architecture", "")),
        one_platform=min(_major(server), _major(client)) >= _ONE_PLATFORM,
    )


def _containerd_root(info: Mapping[str, Any], docker_root: str, config: Path) -> str:
    """A containerd that Docker started by itself is below Docker's root; another one says so in its file."""
    address = str((info.get("Containerd") or {}).get("Address", ""))
    if address.startswith(("/run/docker/", "/var/run/docker/")):
        return f"{docker_root}/containerd/daemon"
    text = config.read_text(encoding="utf-8") if config.is_file() else ""
    # Its own keys stand before the first table. No tomllib: a Python that is too old has to be told of.
    own = re.split(r"(?m)^\s*\[", text, maxsplit=1)[0]
    found = re.search(r"""(?m)^\s*root\s*=\s*["'](.+?)["']""", own)
    return found[1] if found else "/var/lib/containerd"


def _major(version: str) -> int:
    number = version.partition(".")[0]
    return int(number) if number.isdigit() else 0


def stored_logins(path: Path = _LOGINS) -> list[str]:
    """Registries for which Docker has a login, never the login itself; a file that is no JSON has none."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    parts = [config.get(part) for part in ("auths", "credHelpers")] if isinstance(config, dict) else []
    return sorted({str(name) for part in parts if isinstance(part, dict) for name in part})


def parse_image(reference: str, inspected: dict[str, Any]) -> Image:
    """Read one entry of `docker image inspect`. Docker's versions differ in how they write nothing."""
    config = inspected.get("Config") or {}
    content = {
        "layers": (inspected.get("RootFS") or {}).get("Layers") or [],
        "config": {key: config.get(key) or None for key in _RUNTIME_CONFIG},
        "platform": [inspected.get("Os"), inspected.get("Architecture")],
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return Image(
        reference,
        f"sha256:{digest}",
        str(inspected.get("Architecture", "")),
        dict(config.get("Labels") or {}),
        int(inspected.get("Size") or 0),
    )


def read_docker() -> Docker:
    """Ask the daemon; raise `CommandError` when it is missing or does not answer."""
    info = json.loads(run(["docker", "info", "--format", "{{json .}}"], timeout=30))
    return replace(parse_docker_info(info), logins=stored_logins())


def read_image(reference: str) -> Image | None:
    """The image if it is here. By inspect: `docker pull` of a present image still needs the registry."""
    try:
        text = run(["docker", "image", "inspect", reference], timeout=30)
    except CommandError as error:
        if "no such image" in error.said.lower():
            return None
        raise
    return parse_image(reference, json.loads(text)[0])


def read_images(references: Iterable[str]) -> list[Image]:
    """Those that are here, in this order."""
    return [image for image in map(read_image, references) if image]


def matching(nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
    """The image of each rank: the head's, and what of a worker's has the same content, by whatever name."""
    head = nodes[0].get("image")
    same: list[Mapping[str, Any] | None] = [head]
    for node in nodes[1:]:
        found = (image for image in node.get("images") or [] if head and image["content"] == head["content"])
        same.append(next(found, None))
    return same


def image_faults(
    nodes: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    reference: str,
    label: str,
    to_come: bool,
) -> list[str]:
    """Nodes without the image, with one for other machines, or with other content than the head's (C-20).

    `label` names the image's label that tells which patches are in it. `to_come`: in check mode, what is not
    there yet, or not the right one, is no fault.
    """
    faults: list[str] = []
    if to_come:
        return faults
    head = nodes[0].get("image")
    for name, node, same in zip(names, nodes, matching(nodes), strict=True):
        image = node.get("image")
        if not image:
            faults.append(f"{name} does not have {reference}: run with -e prepare=auto")
        elif image["architecture"] != node["architecture"]:
            faults.append(
                f"{name} is {node['architecture']}, {image['reference']} is an image for "
                f"{image['architecture']}: set image and image_digest to one for {node['architecture']}"
            )
        elif head and not same:
            faults.append(_differs(name, image, names[0], head, label))
    return faults


def _differs(name: str, here: Mapping[str, Any], head: str, there: Mapping[str, Any], label: str) -> str:
    reference, patches = here["reference"], [(image["labels"] or {}).get(label) for image in (here, there)]
    if all(patches) and patches[0] != patches[1]:
        said = f"{name} runs {reference} with patches {patches[0]}, {head} has {patches[1]}"
    else:
        said = f"{name} has other content behind {reference} than {head}"
    return f"{said}; run with -e prepare=auto to replace it"
