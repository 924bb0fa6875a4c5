"""What we have put on a node, to take it away: files, units, user, images, weights, caches."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import accounts, hf_removal, jobs
from .hf_blobs import PARTIAL
from .managed_files import ETC, PATHS, RUNTIME, UNITS
from .services import GATEWAY, is_active, parse_show, read_services
from .shared_weights import EXPORTS, HOME
from .shell import CommandError, CommandMissing, run

# These go only when somebody said so: they take long to come again, or are not ours alone.
ASKED = ("weights", "images", "caches")
USER = "twinserve"
STATE = Path("/var/lib/twinserve")
_FOLDERS = (ETC, RUNTIME, "/var/log/twinserve", "/run/twinserve", "/var/cache/twinserve-gateway", str(STATE))
# Whoever looks whether the link has to be put back leaves a lock here, which the next boot takes away.
_WAY_BACK = "/run/twinserve-way-back"
_OURS_ALONE = "localhost/twinserve/*"
# What says which weights, images and caches are ours.
_KNOWING = (ETC, str(STATE))
_NO_IMAGE = re.compile(r"no such (?:image|object)", re.IGNORECASE)
MOUNTS = Path("/proc/self/mounts")
_SHARED = re.compile(r"nfs\d?|cifs|smb3|ceph|lustre|beegfs|9p|virtiofs|fuse(?:\..*)?")
_NEXT = {
    "weights": "mend that, or keep the weights (-e clean_weights=false), then run this again",
    "images": (
        "remove what uses it (docker ps --all, docker rm CONTAINER), or keep the images "
        "(-e clean_images=false), then run this again"
    ),
    "caches": "mend that, or keep the caches (-e clean_caches=false), then run this again",
    "installed": "mend that, then run this again",
    "user": f"end what runs as it (ps -u {USER}), then run this again",
}


class Unclean(RuntimeError):
    """Something must not be taken away now; the text says why, and what to do."""


@dataclass(frozen=True)
class Item:
    """One thing that goes. `how` is what takes it away: unit, path, tree, user, image or snapshot.

    `stays` says why it stays whatever was asked for; empty when it may go.
    """

    kind: str
    how: str
    name: str
    size: int = 0
    stays: str = ""


def find(caches: Iterable[str], root: Path = Path("/")) -> list[Item]:
    """All that is here, in the order in which it has to go; `caches` are roots of Hugging Face caches."""
    plans, snapshots = list(_plans(root)), hf_removal.ours(_below(root, STATE) / "manifests")
    sources = [mount["source"] for plan in plans for mount in plan.get("mounts", [])]
    homes = [*caches, *sources]
    return [
        *_begun(homes),
        # By what stands in our own files: those go last, so that an interrupted run can be done again.
        *_weights(homes, snapshots),
        *_images(plans),
        *_caches(plans),
        *_installed(root),
    ]


def remove_all(items: Iterable[Item]) -> list[str]:
    """Take away one after the other; returns why some could not be, each with what to do.

    While that is some of the weights, images or caches, what says that they are ours stays for the next run.
    """
    faults: list[str] = []
    unknowable = False
    for item in items:
        if unknowable and item.name.endswith(_KNOWING):
            continue
        try:
            remove(item)
        except (Unclean, CommandError, OSError) as error:
            faults.append(f"{item.name}: {error}; {_NEXT.get(item.how) or _NEXT[item.kind]}")
            unknowable |= item.kind in ASKED
    return faults


def remove(item: Item) -> None:
    """Take one thing away. Raises Unclean, CommandError or OSError."""
    path = Path(item.name)
    match item.how:
        case "unit":
            run(["systemctl", "--quiet", "disable", "--now", path.name])
            _forget(path.name)
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


def _forget(unit: str) -> None:
    """One that failed would be listed for ever. A job that is stopped at its work has failed, too."""
    shown = parse_show(run(["systemctl", "show", unit, "--property", "ActiveState"]))
    if any(one.get("ActiveState") == "failed" for one in shown):
        run(["systemctl", "reset-failed", unit])


def running() -> str:
    """Why nothing may go now: the pair is started, or a job would go on writing into what is taken away."""
    if units := [name for name, unit in read_services().items() if is_active(unit) and name != GATEWAY]:
        return f"{' and '.join(units)} runs: run playbooks/stop.yml first, then this again"
    if work := " ".join(_jobs()):
        return f"{work} runs: wait for it, or systemctl stop {work}; then run this again"
    return ""


def refuse_running() -> None:
    """Raise Unclean while the pair is started, or a job runs."""
    if text := running():
        raise Unclean(text)


def _jobs() -> list[str]:
    listed = run(["systemctl", "list-units", "--all", "--plain", "--no-legend", "twinserve-job-*"])
    names = [line.split()[0] for line in listed.splitlines() if line.split()]
    if not names:
        return []
    shown = parse_show(run(["systemctl", "show", *names, "--property", "Id,ActiveState,SubState"]))
    return [one["Id"] for one in shown if jobs.classify(one) == "running"]


def refuse_mounts(path: Path, mounts: str | None = None) -> None:
    """Raise Unclean when something is mounted at or below `path`: its content is not of this node."""
    for place, _ in _mounts(mounts):
        if place == path or path in place.parents:
            raise Unclean(f"{place} is a mount: umount it, then run this again")


def _mounts(text: str | None = None) -> Iterator[tuple[Path, str]]:
    """Where something is mounted, and of which type."""
    for line in (MOUNTS.read_text() if text is None else text).splitlines():
        _, place, kind, *_ = line.split()
        yield Path(place.replace("\\040", " ")), kind


def _shared(places: Iterable[Path]) -> str:
    """Why something at `places` stays: other machines have it too."""
    mounts = list(_mounts())
    for path in sorted({place.resolve() for place in places}):
        above = [one for one in mounts if one[0] == path or one[0] in path.parents]
        mount, kind = max(above, key=lambda one: len(one[0].parts), default=(path, ""))
        if _SHARED.fullmatch(kind):
            return f"it is on {mount} ({kind}), which others may use: remove it where it is kept"
    return ""


def _installed(root: Path) -> Iterator[Item]:
    for path in [*PATHS, EXPORTS]:
        inside = _below(root, path)
        if inside.is_file() and not path.startswith(f"{ETC}/"):
            yield Item("installed", "unit" if path.startswith(UNITS) else "path", str(inside))
    for folder in _FOLDERS:
        inside = _below(root, folder)
        if inside.is_dir():
            yield Item("installed", "tree", str(inside))
    way_back = _below(root, _WAY_BACK)
    if way_back.is_dir() and any(path.suffix != ".lock" for path in way_back.iterdir()):
        yield Item("installed", "tree", str(way_back))
    users = filter(accounts.exists, (USER, f"{USER}-gateway"))
    yield from (Item("installed", "user", name) for name in users)


def _weights(caches: Iterable[str], snapshots: Collection[tuple[str, str]]) -> Iterator[Item]:
    for hub in dict.fromkeys(Path(cache, "hub").resolve() for cache in caches if cache != HOME):
        for removal in hf_removal.plan(hub, snapshots):
            shared = _shared([removal.snapshot, *(path.parent for path in removal.files)])
            yield Item("weights", "snapshot", str(removal.snapshot), removal.size, shared)


def _begun(caches: Iterable[str]) -> Iterator[Item]:
    """What a copy that broke has left in a worker's cache: nobody but the next copy can use it."""
    places: list[Path] = []
    for home in (Path(cache) for cache in caches if cache != HOME):
        hub = home / "hub"
        places += [home / PARTIAL, *hub.glob(f"*--*/blobs/{PARTIAL}"), *hub.glob(f"blobs/*/{PARTIAL}")]
    for path in dict.fromkeys(place.resolve() for place in places):
        if path.is_dir():
            yield Item("installed", "tree", str(path), stays=_shared([path]))


def _remove_snapshot(snapshot: Path) -> None:
    folder = snapshot.parent.parent
    for removal in hf_removal.plan(folder.parent, {(folder.name, snapshot.name)}):
        hf_removal.remove(removal)


def _images(plans: Iterable[dict[str, Any]]) -> Iterator[Item]:
    try:
        listed = run(["docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", _OURS_ALONE]).split()
    except CommandMissing:
        return  # without Docker there are none
    except CommandError as error:
        raise _no_docker(error) from error
    for name in dict.fromkeys([*listed, *(plan["image"] for plan in plans if plan.get("image"))]):
        try:
            size = run(["docker", "image", "inspect", "--format", "{{.Size}}", name]).strip()
        except CommandError as error:
            if _NO_IMAGE.search(error.said):
                continue
            raise _no_docker(error) from error
        yield Item("images", "image", name, int(size))


def _no_docker(error: CommandError) -> Unclean:
    return Unclean(
        f"Docker does not tell which images are here: {error}; systemctl restart docker, then run this again"
    )


def _caches(plans: Iterable[dict[str, Any]]) -> Iterator[Item]:
    """Folders that the containers wrote to: compiled kernels, kept prompts.

    The latter are in folders that somebody named as they are, so that more than prompts may be in there.
    """
    written = {
        mount["source"]: mount["source"] in plan.get("folders", [])
        for plan in plans
        for mount in plan.get("mounts", [])
        if not mount["read_only"]
    }
    for path, named in ((Path(name), named) for name, named in written.items()):
        if path.is_dir():
            stays = (
                f"it may hold more than kept prompts: look, then rm -r {path}" if named else _shared([path])
            )
            yield Item("caches", "tree", str(path), jobs.folder_size(path), stays)


def _plans(root: Path) -> Iterator[dict[str, Any]]:
    """The rank's plan as it stands, and those that are kept to go back to."""
    good = _below(root, STATE) / "good"
    for top in (root, good / "current", good / "previous"):
        path = _below(top, f"{ETC}/rank.json")
        if path.is_file():
            try:
                plan: dict[str, Any] = json.loads(path.read_text())
            except ValueError as error:
                raise Unclean(
                    f"{path}, which says what is ours, cannot be read: {error}; rm {path}, then run this "
                    "again: what it alone names stays"
                ) from error
            yield plan


def _below(root: Path, path: str | Path) -> Path:
    return root / str(path).lstrip("/")
