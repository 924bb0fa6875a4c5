"""What we have put on a node, to take it away: files, units, user, images, weights, caches."""

from __future__ import annotations

import json
import pwd
import shutil
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import hf_removal, jobs
from .managed_files import ETC, PATHS, RUNTIME, UNITS
from .services import is_active, parse_show, read_services
from .shared_weights import EXPORTS, HOME
from .shell import CommandError, run

# These go only when somebody said so: they take long to come again, or are not ours alone.
ASKED = ("weights", "images", "caches")
USER = "twinserve"
STATE = Path("/var/lib/twinserve")
_FOLDERS = (ETC, RUNTIME, "/var/log/twinserve", "/run/twinserve", "/run/twinserve-way-back", str(STATE))
_OURS_ALONE = "localhost/twinserve/*"


class Unclean(RuntimeError):
    """Something must not be taken away now; the text says why, and what to do."""


@dataclass(frozen=True)
class Item:
    """One thing that goes. `how` is what takes it away: unit, path, tree, user, image or snapshot."""

    kind: str
    how: str
    name: str
    size: int = 0


def find(caches: Iterable[str], root: Path = Path("/")) -> list[Item]:
    """All that is here, in the order in which it has to go; `caches` are roots of Hugging Face caches."""
    plans, snapshots = list(_plans(root)), hf_removal.ours(_below(root, STATE) / "manifests")
    sources = [mount["source"] for plan in plans for mount in plan.get("mounts", [])]
    return [
        # By what stands in our own files: those go last, so that an interrupted run can be done again.
        *_weights([*caches, *sources], snapshots),
        *_images(plans),
        *_caches(plans),
        *_installed(root),
    ]


def remove(item: Item) -> None:
    """Take one thing away. Raises Unclean, CommandError or OSError."""
    path = Path(item.name)
    match item.how:
        case "unit":
            run(["systemctl", "--quiet", "disable", path.name])
            path.unlink(missing_ok=True)
        case "path":
            path.unlink(missing_ok=True)
        case "tree":
            refuse_mounts(path)
            shutil.rmtree(path)
        case "user":
            run(["userdel", item.name])
        case "image":
            run(["docker", "image", "rm", item.name], timeout=300)
        case "snapshot":
            _remove_snapshot(path)
        case _:
            raise ValueError(item.how)


def refuse_running() -> None:
    """Raise Unclean while the pair is started, or a job would go on writing into what is taken away."""
    running = [name for name, unit in read_services().items() if is_active(unit)]
    if running:
        raise Unclean(f"{' and '.join(running)} runs: run playbooks/stop.yml first, then this again")
    if work := " ".join(_jobs()):
        raise Unclean(f"{work} runs: wait for it, or systemctl stop {work}; then run this again")


def _jobs() -> list[str]:
    listed = run(["systemctl", "list-units", "--all", "--plain", "--no-legend", "twinserve-job-*"])
    names = [line.split()[0] for line in listed.splitlines() if line.split()]
    if not names:
        return []
    shown = parse_show(run(["systemctl", "show", *names, "--property", "Id,ActiveState,SubState"]))
    return [one["Id"] for one in shown if jobs.classify(one) == "running"]


def refuse_mounts(path: Path, mounts: str | None = None) -> None:
    """Raise Unclean when something is mounted at or below `path`: its content is not of this node."""
    text = Path("/proc/self/mounts").read_text() if mounts is None else mounts
    for line in text.splitlines():
        place = Path(line.split()[1].replace("\\040", " "))
        if place == path or path in place.parents:
            raise Unclean(f"{place} is a mount: umount it, then run this again")


def _installed(root: Path) -> Iterator[Item]:
    for path in [*PATHS, EXPORTS]:
        inside = _below(root, path)
        if inside.is_file() and not path.startswith(f"{ETC}/"):
            yield Item("installed", "unit" if path.startswith(UNITS) else "path", str(inside))
    for folder in _FOLDERS:
        inside = _below(root, folder)
        if inside.is_dir():
            yield Item("installed", "tree", str(inside))
    try:
        pwd.getpwnam(USER)
    except KeyError:
        return
    yield Item("installed", "user", USER)


def _weights(caches: Iterable[str], snapshots: Collection[tuple[str, str]]) -> Iterator[Item]:
    for hub in dict.fromkeys(Path(cache, "hub").resolve() for cache in caches if cache != HOME):
        for removal in hf_removal.plan(hub, snapshots):
            yield Item("weights", "snapshot", str(removal.snapshot), removal.size)


def _remove_snapshot(snapshot: Path) -> None:
    folder = snapshot.parent.parent
    for removal in hf_removal.plan(folder.parent, {(folder.name, snapshot.name)}):
        hf_removal.remove(removal)


def _images(plans: Iterable[dict[str, Any]]) -> Iterator[Item]:
    try:
        listed = run(["docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", _OURS_ALONE]).split()
    except CommandError:
        return  # without Docker there are none
    for name in dict.fromkeys([*listed, *(plan["image"] for plan in plans if plan.get("image"))]):
        try:
            size = run(["docker", "image", "inspect", "--format", "{{.Size}}", name]).strip()
        except CommandError:
            continue  # it is no longer here
        yield Item("images", "image", name, int(size))


def _caches(plans: Iterable[dict[str, Any]]) -> Iterator[Item]:
    """Folders that the containers wrote to: compiled kernels, kept prompts."""
    written = [
        mount["source"] for plan in plans for mount in plan.get("mounts", []) if not mount["read_only"]
    ]
    for name in dict.fromkeys(written):
        if Path(name).is_dir():
            yield Item("caches", "tree", name, jobs.folder_size(Path(name)))


def _plans(root: Path) -> Iterator[dict[str, Any]]:
    """The rank's plan as it stands, and those that are kept to go back to."""
    good = _below(root, STATE) / "good"
    for top in (root, good / "current", good / "previous"):
        path = _below(top, f"{ETC}/rank.json")
        if path.is_file():
            plan: dict[str, Any] = json.loads(path.read_text())
            yield plan


def _below(root: Path, path: str | Path) -> Path:
    return root / str(path).lstrip("/")
