"""A Hugging Face cache in its two layouts, filled with small files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

REPO, REVISION = "o/n", "9eaebb7c4e96d983dcd538e18624622ba5b820a8"
FILES: dict[str, bytes] = {
    "config.json": b'{"a": 1}',
    "model-00001-of-00002.safetensors": b"weights one",
    "model-00002-of-00002.safetensors": b"weights two!",
    "tokenizer/vocab.txt": b"a\nb\n",
}
LARGE = [name for name in FILES if name.endswith(".safetensors")]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def fill(home: Path, *, shared: bool = False, tree: bool = True, files: Mapping[str, bytes] = FILES) -> Path:
    """Put the files into the cache below `home`; returns the snapshot's folder.

    `shared` is the layout with one store for all repositories, `tree` the hub's own list.
    """
    folder = home / "hub/models--o--n"
    snapshot = folder / "snapshots" / REVISION
    for name, data in files.items():
        etag = sha256(data) if name in LARGE else git_hash(data)
        blob = folder / "blobs" / etag
        blob.parent.mkdir(parents=True, exist_ok=True)
        if shared:
            # The store names payloads by another hash than the repository does.
            store = hashlib.sha256(b"xet" + data).hexdigest()
            payload = home / "hub/blobs" / store[:2] / store
            payload.parent.mkdir(parents=True, exist_ok=True)
            payload.write_bytes(data)
            (home / "hub/blobs/.huggingface-shared-blobs").write_text("1\n")
            blob.symlink_to(Path("../../blobs", store[:2], store))
        else:
            blob.write_bytes(data)
        link = snapshot / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(Path(*[".."] * (2 + name.count("/")), "blobs", etag))
    if tree:
        listed = folder / "trees" / f"{REVISION}.json"
        listed.parent.mkdir(parents=True, exist_ok=True)
        listed.write_text(json.dumps({"format_version": 1, "files": hub_list(files)}))
    return snapshot


def hub_list(files: Mapping[str, bytes] = FILES) -> dict[str, dict[str, object]]:
    """What the hub says of the files, as the client keeps it."""
    entries: dict[str, dict[str, object]] = {}
    for name, data in files.items():
        # What git itself keeps of a large file is a note of about this size.
        large = {"size": 135, "lfs_size": len(data), "lfs_sha256": sha256(data)} if name in LARGE else {}
        entries[name] = {"size": len(data), "blob_id": git_hash(data), **large}
    return entries
