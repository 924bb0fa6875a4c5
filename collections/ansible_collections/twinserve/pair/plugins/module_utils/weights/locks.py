"""Which lock of the cache a download waits for, and who holds it.

The client takes `.locks/<repository>/<etag>.lock` by flock, or, where the file system has none, by the mere
presence of the file. Files of the first kind stay behind and mean nothing; one of the second kind that a
killed run left stops every later one (M-10).
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..hf_cache import repo_folder

_PID = re.compile(r"\s*(\d+)\b")


@dataclass(frozen=True)
class Lock:
    """A lock file; `holder` is the process that has it, 0 when it is not known which, None when none has."""

    path: Path
    holder: int | None


def lock_path(home: str, repo: str, etag: str) -> Path:
    """Where the client locks a payload."""
    return Path(home, "hub", ".locks", repo_folder(home, repo).name, f"{etag}.lock")


def read_lock(path: Path) -> Lock:
    """Who holds the lock now. Raises FileNotFoundError when it is gone."""
    with path.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return Lock(path, _flock_holder(os.fstat(stream.fileno())) or 0)
        except OSError:
            pass  # no flock here: the file itself is the lock
        # Who made a lock of presence wrote his number into it.
        noted = _PID.match(stream.read(64).decode(errors="replace"))
        alive = noted is not None and Path("/proc", noted[1]).exists()
        return Lock(path, int(noted[1]) if noted and alive else None)


def _flock_holder(stat: os.stat_result) -> int | None:
    """The process that the kernel lists for this file, else one that has it open: who took it may be gone."""
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        # By the inode alone: the device may be named otherwise here (overlayfs).
        listed = "->" not in words and len(words) > 5 and words[1] == "FLOCK"
        if listed and words[5].endswith(f":{stat.st_ino}") and Path("/proc", words[4]).exists():
            return int(words[4])
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # over meanwhile, or a pipe
            if int(link.parts[2]) != os.getpid() and os.path.samestat(link.stat(), stat):
                return int(link.parts[2])
    return None


def waiting_on(home: str, repo: str, etags: Collection[str], own: Collection[int]) -> Lock | None:
    """The lock that a download without progress waits for; `etags` are payloads that are not whole.

    None when one of the locks is held by the download itself (`own` processes): then it is the network that
    stands still. A lock that another process holds is named before one that nobody does.
    """
    found = []
    for etag in sorted(etags):
        try:
            found.append(read_lock(lock_path(home, repo, etag)))
        except FileNotFoundError:
            continue
    if any(lock.holder in own for lock in found if lock.holder):
        return None
    return next((lock for lock in found if lock.holder is not None), found[0] if found else None)


def processes_below(roots: Collection[int]) -> set[int]:
    """These processes with all their descendants, and whoever shares a session with one of them."""
    table: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in brackets, may hold anything.
            words = entry.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        table[int(entry.parent.name)] = (int(words[1]), int(words[3]))
    found = set(roots)
    while more := {pid for pid, (parent, session) in table.items() if {parent, session} & found} - found:
        found |= more
    return found
