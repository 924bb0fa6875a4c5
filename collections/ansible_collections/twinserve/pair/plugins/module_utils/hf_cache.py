"""A Hugging Face cache on disk: is a pinned snapshot whole, and which files make it up?

Layouts, both seen with huggingface_hub 2.4: `snapshots/<sha>/<path>` links to `../../blobs/<etag>`, which
is a file, or a link into the shared store `hub/blobs/`. A snapshot is taken for whole only against a
manifest that was written after a verified download; a folder that merely looks full is not.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import hf_blobs

MANIFESTS = Path("/var/lib/twinserve/manifests")


@dataclass(frozen=True)
class SnapshotState:
    """What is on disk of one repository at one revision; sizes in bytes.

    Of a snapshot that is not complete: `here` is what need not come again, `missing` what has still to come,
    where the hub's list tells it, `blobs` the payloads on disk by file name, `others` the revisions that are
    there besides.
    """

    complete: bool
    reason: str
    files: int
    size: int
    here: int = 0
    missing: int | None = None
    blobs: dict[str, int] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)


def folder_name(repo: str) -> str:
    """A repository's folder in the cache: `models--org--name`."""
    return "models--" + repo.replace("/", "--")


def repo_folder(hf_home: str, repo: str) -> Path:
    """The same below the cache root."""
    return Path(hf_home, "hub", folder_name(repo))


def snapshot_folder(hf_home: str, repo: str, revision: str) -> Path:
    """Where the files of a revision are linked together."""
    return repo_folder(hf_home, repo) / "snapshots" / revision


def manifest_path(repo: str, revision: str) -> Path:
    """Where a node notes what a verified snapshot holds."""
    return MANIFESTS / f"{repo.replace('/', '--')}@{revision}.json"


def list_path(repo: str, revision: str) -> Path:
    """Where the head keeps the hub's list of a revision's files, since not every client does."""
    return MANIFESTS / f"{repo.replace('/', '--')}@{revision}.hub.json"


def walk(snapshot: Path) -> Iterator[tuple[str, Path]]:
    """Each file of a snapshot with its path inside it, in byte order (both nodes must list alike)."""
    found = [Path(folder, name) for folder, _, names in os.walk(snapshot) for name in names]
    for path in sorted(found, key=lambda one: os.fsencode(one)):
        yield str(path.relative_to(snapshot)), path


def list_snapshot(snapshot: Path) -> dict[str, int]:
    """Path in the snapshot -> size in bytes, links followed; a link into nothing has -1, as no file has."""
    return {name: _size(path) for name, path in walk(snapshot)}


def not_owned(hf_home: str, repos: Sequence[str], uid: int) -> dict[str, Any]:
    """`count` of the paths that are not the user's and the `first`, where downloads of `repos` write."""
    hub = Path(hf_home, "hub")
    tops = [
        Path(hf_home),
        hub,
        hub / ".locks",
        hub / "blobs",
        *(repo_folder(hf_home, repo) for repo in repos),
    ]
    paths = set(tops[:2])
    for top in tops[2:]:
        paths |= {
            Path(folder, name) for folder, folders, names in os.walk(top) for name in ("", *folders, *names)
        }
    strange = sorted(str(path) for path in paths if _owner(path) not in (uid, None))
    return {"count": len(strange), "first": strange[0] if strange else ""}


def _owner(path: Path) -> int | None:
    try:
        return path.lstat().st_uid
    except FileNotFoundError:
        return None  # a download goes on beside us


def unfinished(hf_home: str, repo: str) -> list[str]:
    """Downloads of this repository that were begun and not ended, of whatever revision (M-05)."""
    return sorted(path.name for path in (repo_folder(hf_home, repo) / "blobs").glob("*.incomplete"))


def hub_list(hf_home: str, repo: str, revision: str) -> dict[str, dict[str, Any]]:
    """The hub's own file list, as the client stored it in `trees/<sha>.json` (format 1, huggingface_hub 2.4).

    Else as it was noted here, for a client that stores none, or in a way that we do not know, and for a list
    that a loss of power tore: the client does not wait for the disk, and writes such a list anew. Empty when
    there is neither.
    """
    places = (repo_folder(hf_home, repo) / "trees" / f"{revision}.json", list_path(repo, revision))
    trees = (_json(place) for place in places)
    return next((dict(one["files"]) for one in trees if one.get("format_version") == 1), {})


def list_note(repo: str, revision: str, files: Mapping[str, Any]) -> tuple[Path, str]:
    """Where to keep what the hub answered, and that in the client's own format."""
    return list_path(repo, revision), json.dumps({"format_version": 1, "files": files})


def _json(path: Path) -> dict[str, Any]:
    """The object in a file; an empty one for a file that is not there, or torn."""
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def manifest_from_disk(hf_home: str, repo: str, revision: str) -> dict[str, dict[str, Any]]:
    """What a snapshot must have: `files` (size by path) and `digests` (`sha256:...` or `git:...` by path).

    Taken from the hub's list; where there is none, from the files that are there and their blobs' names.
    """
    listed = hub_list(hf_home, repo, revision)
    if not listed:
        snapshot = snapshot_folder(hf_home, repo, revision)
        return {"files": list_snapshot(snapshot), "digests": _digests_by_name(snapshot)}
    return {
        "files": {path: int(entry.get("lfs_size") or entry["size"]) for path, entry in listed.items()},
        "digests": {path: _digest(entry) for path, entry in listed.items()},
    }


def _digests_by_name(snapshot: Path) -> dict[str, str]:
    """The hub's hashes as the client keeps them: the first link leads to a blob that is named by its etag.

    (In the shared store the payload has another name, by another hash.)
    """
    kinds = {64: "sha256", 40: "git"}
    named = {name: path.readlink().name for name, path in walk(snapshot) if path.is_symlink()}
    hashes = {name: etag for name, etag in named.items() if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", etag)}
    return {name: f"{kinds[len(etag)]}:{etag}" for name, etag in hashes.items()}


def _digest(entry: dict[str, Any]) -> str:
    """Large files are named by their SHA-256, the others by git's own hash of a blob."""
    return f"sha256:{entry['lfs_sha256']}" if entry.get("lfs_sha256") else f"git:{entry['blob_id']}"


def differences(snapshot: Path, expected: dict[str, int]) -> list[str]:
    """What is missing or has another size, one readable entry a file."""
    wrong = []
    for name, size in expected.items():
        if (found := _size(snapshot / name)) < 0:
            wrong.append(f"{name} is missing")
        elif found != size:
            wrong.append(f"{name} has {found} bytes instead of {size}")
    return wrong


def _size(path: Path) -> int:
    """Bytes of what a link leads to in the end; -1 for a link into nothing, as no file has."""
    return path.stat().st_size if path.exists() else -1


def lacking(hf_home: str, repo: str, revision: str) -> tuple[list[str], int]:
    """Files that a snapshot lacks, or has in another size, and how many it should have.

    By the hub's list; where the client left none, by what the snapshot says of itself: its indexes name all
    shards, a link into nothing is a file that is missing, and so is a torn index and what was begun and not
    ended.
    """
    snapshot = snapshot_folder(hf_home, repo, revision)
    listed = hub_list(hf_home, repo, revision)
    if listed:
        sizes = {path: int(entry.get("lfs_size") or entry["size"]) for path, entry in listed.items()}
        return [name for name, size in sizes.items() if _size(snapshot / name) != size], len(sizes)
    there = list_snapshot(snapshot)
    if "config.json" not in there:
        return ["config.json"], max(1, len(there))
    indexes = {one.name: _json(one) for one in sorted(snapshot.glob("*.index.json")) if one.is_file()}
    shards = [name for index in indexes.values() for name in index.get("weight_map", {}).values()]
    names = dict.fromkeys([*there, *shards])
    wrong = [name for name in names if there.get(name, -1) < 0 or indexes.get(name) == {}]
    return [*wrong, *unfinished(hf_home, repo)], len(names)


def snapshot_state(hf_home: str, repo: str, revision: str, copied: bool = False) -> SnapshotState:
    """Compare the snapshot with its manifest by size; `copied`: it comes from another node, not the hub."""
    expected: dict[str, int] = _json(manifest_path(repo, revision)).get("files") or {}
    if not expected:
        return _partial(hf_home, repo, revision, copied, "not verified on this node yet")
    wrong = differences(snapshot_folder(hf_home, repo, revision), expected)
    if wrong:
        reason = f"{len(wrong)} of {len(expected)} files: {wrong[0]}"
        return _partial(hf_home, repo, revision, copied, reason)
    return SnapshotState(True, "", len(expected), sum(expected.values()))


def _partial(hf_home: str, repo: str, revision: str, copied: bool, reason: str) -> SnapshotState:
    """A snapshot that is not whole, with what is there of it and what has still to come."""
    folder = repo_folder(hf_home, repo)
    blobs = hf_blobs.on_disk(folder, copied)
    foreign = _used_by_others(folder, revision)
    here = sum(size for name, size in blobs.items() if name not in foreign)
    wanted = hf_blobs.by_etag(hub_list(hf_home, repo, revision))
    # A whole blob counts whatever revision brought it; of one that is begun, what is there.
    return SnapshotState(
        False,
        reason,
        0,
        0,
        here,
        hf_blobs.missing(wanted, blobs) if wanted else None,
        blobs,
        sorted(path.name for path in folder.glob("snapshots/*") if path.name != revision),
    )


def _used_by_others(folder: Path, revision: str) -> set[str]:
    """Blobs that other revisions are made of and this one is not, as far as it is there."""
    by_revision = {one.name: _blob_names(one) for one in folder.glob("snapshots/*")}
    own = by_revision.pop(revision, set())
    return set().union(*by_revision.values()) - own


def _blob_names(snapshot: Path) -> set[str]:
    return {path.readlink().name for _, path in walk(snapshot) if path.is_symlink()}


def transfer_list(snapshot: Path) -> list[str]:
    """What a copy of this snapshot needs, relative to `hub/`: the payloads, each once, then its links.

    The links are copied as links, all hops of them, so that both layouts arrive as they are: blobs in the
    repository's own folder, and blobs that are links into the shared store. Such a blob comes right behind
    its payload: by it alone what arrived is known after the copy was cut off. Raises ValueError for a link
    that leaves `hub/`.
    """
    hub = snapshot.parent.parent.parent
    blobs: dict[str, None] = {}
    links: dict[str, None] = {}
    for _, path in walk(snapshot):
        hops = []
        while path.is_symlink():
            hops.append(_below(path, hub))
            path = Path(os.path.normpath(path.parent / path.readlink()))
        blobs.update(dict.fromkeys([_below(path, hub), *reversed(hops[1:])]))
        links.update(dict.fromkeys(hops[:1]))
    # Without its marker, the client leaves a shared store alone.
    marker = hub / "blobs/.huggingface-shared-blobs"
    marked = marker.is_file() and any(name.startswith("blobs/") for name in blobs)
    return [*([_below(marker, hub)] if marked else []), *blobs, *links]


def _below(path: Path, hub: Path) -> str:
    if not path.is_relative_to(hub):
        raise ValueError(f"{path} is outside {hub}, which the copy to a worker does not leave")
    return str(path.relative_to(hub))
