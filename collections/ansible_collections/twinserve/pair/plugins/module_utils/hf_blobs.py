"""The payloads of a Hugging Face cache: which a revision is made of, and how much of each is on disk.

A payload is `blobs/<etag>` of its repository (a file, or a link into the shared store). While it comes it is
`<etag>.incomplete`, with clients since 1.0 `<etag>.<8 hex>.incomplete`, which no later process goes on with.
A copy from another node grows in a folder for partial files, under the payload's own name.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# The folder of a copy for files that are not whole yet.
PARTIAL = ".twinserve-partial"
BEGUN = re.compile(r"([^.]+)(?:\.[0-9a-f]{8})?\.incomplete")
# What no other process can go on with.
LEFTOVER = re.compile(r"([^.]+)\.[0-9a-f]{8}\.incomplete")


def by_etag(listed: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Size by etag, from the client's list of a revision's files: several names of one content are one."""
    return {
        str(entry.get("lfs_sha256") or entry["blob_id"]): int(entry.get("lfs_size") or entry["size"])
        for entry in listed.values()
    }


def on_disk(folder: Path, copied: bool = False) -> dict[str, int]:
    """File name -> bytes on disk below a repository's `blobs`, links into the shared store followed.

    Where payloads are `copied` from another node, what such a copy has begun counts by the payload's name,
    and what a download has begun does not count: nothing goes on with it.
    """
    begun = _begun_copies(folder) if copied else {}
    found = dict(begun)
    for path in folder.glob("blobs/*"):
        if copied and BEGUN.fullmatch(path.name):
            continue
        if (size := _bytes(path)) is not None:
            found[path.name] = size
        elif path.is_symlink() and (into := path.readlink().name) in begun:
            found[path.name] = begun[into]
    return found


def _begun_copies(folder: Path) -> dict[str, int]:
    """What is partial, of whatever repository; either of two folders may be it (see `transfer.words`)."""
    hub, found = folder.parent, dict[str, int]()
    for place in (hub.parent / PARTIAL, folder / "blobs" / PARTIAL, *hub.glob(f"blobs/*/{PARTIAL}")):
        for path in place.glob("*"):
            found[path.name] = max(found.get(path.name, 0), _bytes(path) or 0)
    return found


def _bytes(path: Path) -> int | None:
    """What a file has on disk: it may be as long as it will be before its bytes are there."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None  # a link into nothing, or a download that goes on beside us
    return min(found.st_size, found.st_blocks * 512) if stat.S_ISREG(found.st_mode) else None


def arrived(wanted: Mapping[str, int], blobs: Mapping[str, int]) -> int:
    """Bytes of what is wanted that are there, whole or begun; never more than what is wanted.

    What was begun counts for its room, too: it is gone on with, or removed by the next download.
    """
    begun: dict[str, int] = {}
    for name, size in blobs.items():
        if match := BEGUN.fullmatch(name):
            begun[match[1]] = begun.get(match[1], 0) + size
    return sum(min(size, blobs.get(etag, begun.get(etag, 0))) for etag, size in wanted.items())


def missing(wanted: Mapping[str, int], blobs: Mapping[str, int]) -> int:
    """Bytes that have still to come."""
    return sum(wanted.values()) - arrived(wanted, blobs)
