"""After a copy was verified on a worker: it is put on disk for good, and memory is given back."""

from __future__ import annotations

import contextlib
from pathlib import Path

from . import hf_cache, page_cache
from .hf_blobs import PARTIAL


def settle(hf_home: str, snapshot: Path) -> None:
    """Wait until a whole snapshot is on disk, drop it from the kernel's memory, and remove leftovers.

    Files that are partial under the name of one that is whole are of a stream that broke.
    """
    payloads = {path.resolve() for _, path in hf_cache.walk(snapshot)}
    folders = {Path(hf_home, PARTIAL), *(path.parent / PARTIAL for path in payloads)}
    for path in sorted(payloads):
        page_cache.settle(path)
        begun = path.parent.glob(f".{path.name}.??????")  # rsync's own name for it
        for leftover in (*(folder / path.name for folder in folders), *begun):
            leftover.unlink(missing_ok=True)
    for folder in folders:
        # Not empty: another copy is under way. Not there: nothing was.
        with contextlib.suppress(OSError):
            folder.rmdir()
