"""A Hugging Face cache on disk: is a pinned snapshot whole, and which files make it up?

Layouts, both seen with huggingface_hub 2.4: `snapshots/<sha>/<path>` links to `../../blobs/<etag>`, which is a file, or a
link into the shared store `hub/blobs/`. A snapshot is taken for whole only against a manifest that was written after a
verified download; a folder that merely looks full is not.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFESTS = Path("/var/lib/twinserve/manifests")


@dataclass(frozen=True)
class SnapshotState:
    """What is on disk of one repository at one revision; sizes in bytes."""

    complete: bool
    reason: str
    files: int
    size: int


def repo_folder(hf_home: str, repo: str) -> Path:
    """`hub/models--org--name` below the cache root."""
    return Path(hf_home, "hub", "models--" + repo.replace("/", "--"))


def snapshot_folder(hf_home: str, repo: str, revision: str) -> Path:
    """Where the files of a revision are linked together."""
    return repo_folder(hf_home, repo) / "snapshots" / revision


def manifest_path(repo: str, revision: str, root: Path = MANIFESTS) -> Path:
    """Where a node notes what a verified snapshot holds."""
    return root / f"{repo.replace('/', '--')}@{revision}.json"


def walk(snapshot: Path) -> Iterator[tuple[str, Path]]:
    """Each file of a snapshot with its path inside it, in byte order (both nodes must list alike)."""
    found = [Path(folder, name) for folder, _, names in os.walk(snapshot) for name in names]
    for path in sorted(found, key=lambda one: os.fsencode(one)):
        yield str(path.relative_to(snapshot)), path


def list_snapshot(snapshot: Path) -> dict[str, int]:
    """Path inside the snapshot -> size in bytes, links followed. Raises FileNotFoundError for a link into nothing."""
    return {name: path.stat().st_size for name, path in walk(snapshot)}


def hub_tree(hf_home: str, repo: str, revision: str) -> list[dict[str, Any]]:
    """The hub's own file list as the client stored it (`trees/<sha>.json`); empty for a client that stores none."""
    stored = repo_folder(hf_home, repo) / "trees" / f"{revision}.json"
    if not stored.is_file():
        return []
    entries: Any = json.loads(stored.read_text())
    if isinstance(entries, dict):
        entries = entries.get("entries", [])
    return [entry for entry in entries if isinstance(entry, dict) and "path" in entry and "size" in entry]


def manifest_from_disk(hf_home: str, repo: str, revision: str) -> dict[str, dict[str, Any]]:
    """`files` (size by path) and `sha256` (digest by path) that a snapshot must have: the hub's list, else the disk's."""
    tree = hub_tree(hf_home, repo, revision)
    if tree:
        large = {entry["path"]: entry["lfs"] for entry in tree if entry.get("lfs")}
        digests = {path: lfs.get("sha256") or lfs.get("oid") for path, lfs in large.items()}
        return {"files": {entry["path"]: int(entry["size"]) for entry in tree},
                "sha256": {path: digest for path, digest in digests.items() if digest}}  # fmt: skip
    return {"files": list_snapshot(snapshot_folder(hf_home, repo, revision)), "sha256": {}}


def differences(snapshot: Path, expected: dict[str, int]) -> list[str]:
    """What is missing or has another size, one readable entry a file."""
    wrong = []
    for name, size in expected.items():
        path = snapshot / name
        if not path.exists():
            wrong.append(f"{name} is missing")
        elif (found := path.stat().st_size) != size:
            wrong.append(f"{name} has {found} bytes instead of {size}")
    return wrong


def snapshot_state(hf_home: str, repo: str, revision: str, manifests: Path = MANIFESTS) -> SnapshotState:
    """Compare the snapshot with its manifest by size."""
    noted = manifest_path(repo, revision, manifests)
    if not noted.is_file():
        return SnapshotState(False, "not verified on this node yet", 0, 0)
    expected: dict[str, int] = json.loads(noted.read_text())["files"]
    wrong = differences(snapshot_folder(hf_home, repo, revision), expected)
    if wrong:
        return SnapshotState(False, f"{len(wrong)} of {len(expected)} files: {wrong[0]}", 0, 0)
    return SnapshotState(True, "", len(expected), sum(expected.values()))


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, 4 MiB at a time; a 176 GB snapshot must not pass through memory."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(4 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def wrong_content(snapshot: Path, digests: dict[str, str]) -> list[str]:
    """Files whose bytes differ from the hub's, right size or not."""
    return [f"{name} sha256 differs" for name, wanted in sorted(digests.items()) if file_sha256(snapshot / name) != wanted]


def transfer_list(snapshot: Path) -> list[str]:
    """What a copy of this snapshot needs, relative to the repository's folder: each blob once, then the links."""
    top = snapshot.parent.parent
    blobs: dict[str, None] = {}
    entries = []
    for _, path in walk(snapshot):
        entries.append(str(path.relative_to(top)))
        if path.is_symlink():
            # One step only: in the shared layout the blob is itself a link out of this folder, which the copy follows.
            blob = Path(os.path.normpath(path.parent / path.readlink()))
            blobs[str(blob.relative_to(top))] = None
    return [*blobs, *entries]
