"""The engine's own program on the GPU of a rank that serves: there, once, and with its part of the weights.

A plan says what is expected (`gpu_process`: name, the GPU's UUID and the least GiB, None for unknown).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .shell import CommandError, run

_ARGV = [
    "nvidia-smi",
    "--query-compute-apps=gpu_uuid,pid,process_name,used_memory",
    "--format=csv,noheader,nounits",
]
# GiB: a program with no more than that has a context on the GPU, and no part of a model.
_SMALL = 1.0


@dataclass(frozen=True)
class Process:
    """A program on a GPU; `gib` is None where the driver does not know."""

    gpu: str
    pid: str
    name: str
    gib: float | None

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"


def parse(text: str, root: Path = Path("/")) -> list[Process]:
    """Lines of `gpu_uuid, pid, process_name, MiB`. A program that named itself is known by that name."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < 4 or not cells[1].isdigit():
            continue
        name = _own_name(root / f"proc/{cells[1]}/cmdline") or ", ".join(cells[2:-1])
        gib = int(cells[-1]) / 1024 if cells[-1].isdigit() else None
        found.append(Process(cells[0], cells[1], name, gib))
    return found


def judge(wanted: Mapping[str, Any], processes: Sequence[Process]) -> list[str]:
    """Say what is not as expected on the rank's GPU."""
    name, least = wanted["name"], wanted["least_gib"]
    here = [one for one in processes if wanted["gpu"] in (None, one.gpu)]
    ours = [one for one in here if one.name == name]
    others = [one for one in here if one.name != name and (one.gib or 0.0) > _SMALL]
    if not ours:
        return [f"{name} is not on the GPU: {', '.join(map(str, here)) or 'nothing'} is"]
    if len(ours) > 1:
        pids = ", ".join(one.pid for one in ours)
        return [f"{name} is on the GPU {len(ours)} times (pid {pids}): run playbooks/stop.yml, then site.yml"]
    found = []
    if least is not None and ours[0].gib is not None and ours[0].gib < least:
        found.append(
            f"{name} holds {ours[0].gib:.1f} GiB of the GPU's memory, at least {least:.0f} are expected: it "
            "does not have its part of the weights"
        )
    if others:
        found.append(f"beside {name} the GPU is used by {', '.join(map(str, others))}")
    return found


def problems(wanted: Mapping[str, Any] | None) -> list[str]:
    """Look, and say what is not as the plan expects; nothing where it expects nothing."""
    if not wanted:
        return []
    try:
        return judge(wanted, parse(run(_ARGV, timeout=5)))
    except CommandError as error:
        return [f"whether {wanted['name']} is on the GPU is not known: {error}"]


def _own_name(cmdline: Path) -> str:
    """The first word of a command line, or the title that a program wrote there; empty when it ended."""
    try:
        return cmdline.read_bytes().split(b"\0")[0].decode("utf-8", "replace").strip()
    except OSError:
        return ""
