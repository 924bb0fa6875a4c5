"""After a copy was verified on a worker: it is put on disk for good, and memory is given back."""

from __future__ import annotations

import contextlib
from pathlib import Path

from . import hf_cache, page_cache
from .transfer.words import PARTIAL


def settle(hf_home: str, snapshot: Path) -> None:
    """Wait until a whole snapshot is on disk, drop it from the kernel's memory, and remove leftovers.

    Files that are partial under the name of one that is whole are of a stream that broke.
    """
    payloads = {path.resolve() for _, path in hf_cache.walk(snapshot)}
    leftovers = Path(hf_home, PARTIAL)
    for path in sorted(payloads):
        page_cache.settle(path)
        (leftovers / path.name).unlink(missing_ok=True)
    # Not empty: another copy is under way. Not there: nothing was.
    with contextlib.suppress(OSError):
        leftovers.rmdir()
