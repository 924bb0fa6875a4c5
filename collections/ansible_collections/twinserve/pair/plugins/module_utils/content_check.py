"""Do files have the bytes that the hub says? Every byte is read, several files at a time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_PIECE = 4 << 20
# Hashing is what takes the time; a few cores are enough for the disk, and leave the others to a rank.
_READERS = 4


def file_digest(path: Path, kind: str, seen: Callable[[int], None] = lambda _: None) -> str:
    """Hash a file in pieces: 176 GB must not pass through memory. `kind` is `sha256` or `git`.

    `seen` is told of every piece. What was read leaves the page cache: it is as large as the model.
    """
    digest = hashlib.sha256() if kind == "sha256" else hashlib.sha1(b"blob %d\0" % path.stat().st_size)
    with path.open("rb", buffering=0) as stream:
        while chunk := stream.read(_PIECE):
            digest.update(chunk)
            seen(len(chunk))
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return digest.hexdigest()


def wrong_content(
    snapshot: Path, digests: Mapping[str, str], seen: Callable[[int], None] = lambda _: None
) -> list[str]:
    """Files whose bytes differ from the hub's, right size or not: a sentence each."""

    def judge(name: str) -> str | None:
        kind, _, value = digests[name].partition(":")
        if file_digest(snapshot / name, kind, seen) == value:
            return None
        # The client takes a file that is there for good: it must go before it can be fetched again.
        says = "sha256" if kind == "sha256" else "content"
        return f"{name} {says} differs: remove {(snapshot / name).resolve()} and run again"

    with ThreadPoolExecutor(max_workers=min(_READERS, os.cpu_count() or 1)) as pool:
        return [fault for fault in pool.map(judge, sorted(digests)) if fault]


def uncheckable(files: Mapping[str, int], digests: Mapping[str, str]) -> list[str]:
    """Files that have nothing to compare with: a check that did not take place must not pass."""
    return [f"{name} has no hash to compare with" for name in sorted(files.keys() - digests.keys())]
