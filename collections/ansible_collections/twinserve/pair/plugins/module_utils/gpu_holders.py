"""Who else uses this node's GPU, and so, on a GB10, the memory that a rank needs: containers and programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .docker_argv import DIGEST_LABEL
from .gpus import parse_processes
from .shell import CommandError, run

_PROCESSES = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]


@dataclass(frozen=True)
class Container:
    """A running container; `ours` is a rank's."""

    id: str
    name: str
    gpu: bool
    ours: bool


def parse_containers(text: str) -> list[Container]:
    """Read what `docker container inspect` prints of any number of containers."""
    return [
        Container(
            one["Id"],
            str(one["Name"]).removeprefix("/"),
            _has_gpu(one.get("HostConfig") or {}),
            DIGEST_LABEL in (one["Config"].get("Labels") or {}),
        )
        for one in json.loads(text)
    ]


def _has_gpu(host: Mapping[str, Any]) -> bool:
    """Whether it was given a GPU: by `--gpus`, by CDI, by NVIDIA's runtime or as a device file."""
    for wanted in host.get("DeviceRequests") or []:
        kinds = [kind for group in wanted.get("Capabilities") or [] for kind in group]
        cdi = any("nvidia.com/gpu" in name for name in wanted.get("DeviceIDs") or [])
        if cdi or "gpu" in kinds or wanted.get("Driver") == "nvidia":
            return True
    files = [str(one.get("PathOnHost")) for one in host.get("Devices") or []]
    return host.get("Runtime") == "nvidia" or any(path.startswith("/dev/nvidia") for path in files)


def read_containers() -> list[Container]:
    """Ask Docker for what runs (CommandError: it cannot say)."""
    running = run(["docker", "ps", "--quiet", "--no-trunc"], timeout=20).split()
    if not running:
        return []
    try:
        return parse_containers(run(["docker", "container", "inspect", *running], timeout=20))
    except CommandError as error:
        if "no such container" in error.said.lower():
            return []  # it ended between the two questions, as containers do: what holds memory stays
        raise


def holders(processes: Iterable[str], containers: Sequence[Container], root: Path = Path("/")) -> list[str]:
    """Name them: containers that were given a GPU, and the programs on it that are in none of those."""
    found = {f'container "{one.name}" (GPU)': None for one in containers if one.gpu and not one.ours}
    for pid in processes:
        group = _text(root / f"proc/{pid}/cgroup")
        inside = next((one for one in containers if one.id in group), None)
        if inside is None:
            found[f"{_text(root / f'proc/{pid}/comm') or 'a program'} (pid {pid})"] = None
        elif not inside.ours:
            found[f'container "{inside.name}" (GPU)'] = None
    return list(found)


def read_holders() -> list[str]:
    """Name them where nothing was asked yet (CommandError: Docker or the driver cannot say)."""
    return holders(parse_processes(run(_PROCESSES, timeout=20)), read_containers())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:  # it ended meanwhile
        return ""
