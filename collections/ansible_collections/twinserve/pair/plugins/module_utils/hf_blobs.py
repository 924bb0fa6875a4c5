"""The payloads of a Hugging Face cache: which a revision is made of, and how much of each is on disk.

A payload is `blobs/<etag>` of its repository (a file, or a link into the shared store). While it comes it is
`<etag>.incomplete`, with clients since 1.0 `<etag>.<8 hex>.incomplete`, which no later process goes on with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BEGUN = re.compile(r"([^.]+)(?:\.[0-9a-f]{8})?\.incomplete")
# What no other process can go on with.
LEFTOVER = re.compile(r"([^.]+)\.[0-9a-f]{8}\.incomplete")


def by_etag(listed: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Size by etag, from the client's list of a revision's files: several names of one content are one."""
    return {
        str(entry.get("lfs_sha256") or entry["blob_id"]): int(entry.get("lfs_size") or entry["size"])
        for entry in listed.values()
    }


def on_disk(folder: Path) -> dict[str, int]:
    """File name -> bytes on disk below a repository's `blobs`, links into the shared store followed."""
    found = {}
    for path in folder.glob("blobs/*"):
        try:
            stat = path.stat()
        except FileNotFoundError:
            continue  # a link into nothing, or a download that goes on beside us
        # A file may be as long as it will be before its bytes are there.
        found[path.name] = min(stat.st_size, stat.st_blocks * 512)
    return found


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
