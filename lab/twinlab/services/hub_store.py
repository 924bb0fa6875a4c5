"""What the model hub serves: a directory for each repository, at one revision, on demand with faults."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGE = (".safetensors", ".bin", ".gguf")  # kept in LFS by the real hub, hence named by SHA-256
CHUNK = 2**20
FAULTS = {
    "corrupt",
    "error",
    "moved_to",
    "no_commit",
    "no_etag",
    "no_range",
    "only",
    "rate_limit",
    "short",
    "slow",
    "truncate",
}


@dataclass(frozen=True)
class File:
    """One file as the API describes it; `oid`: SHA-256 of a large file, the git blob's SHA-1 of others."""

    path: Path
    name: str
    size: int
    oid: str
    large: bool

    def entry(self) -> dict[str, Any]:
        """Its line of the tree listing."""
        if not self.large:
            return {"type": "file", "path": self.name, "size": self.size, "oid": self.oid}
        pointer = hashlib.sha1(self.oid.encode(), usedforsecurity=False).hexdigest()
        lfs = {"oid": self.oid, "size": self.size, "pointerSize": 134}
        return {"type": "file", "path": self.name, "size": self.size, "oid": pointer, "lfs": lfs}


@dataclass(frozen=True)
class Repository:
    """A repository at its revision. `gated`: false, true (a token is asked for) or "denied" (never given)."""

    name: str
    folder: Path
    sha: str
    gated: bool | str
    faults: dict[str, Any]

    def fault(self, kind: str, file: str | None = None) -> Any:
        """The value of a fault if it strikes (this file), else None."""
        only = self.faults.get("only")
        if file is not None and only and not any(fnmatch.fnmatch(file, pattern) for pattern in only):
            return None
        value = self.faults.get(kind)
        return None if value is False else value


class Store:
    """All repositories below a directory; digests are kept as long as a file does not change."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[tuple[str, int, int], str] = {}
        self._uses: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def find(self, name: str) -> Repository | None:
        """A repository by ORG/NAME; ValueError if its description has a fault that does not exist."""
        described = self._root / f"{name}.json"
        if not described.is_file():
            return None
        found = json.loads(described.read_text())
        faults = found.get("faults", {})
        unknown = sorted(set(faults) - FAULTS)
        if unknown:
            raise ValueError(f"{described}: unknown fault {', '.join(unknown)}")
        folder = (self._root / name).resolve()
        return Repository(name, folder, found["sha"], found.get("gated", False), faults)

    def files(self, repository: Repository) -> list[File]:
        """All files of a repository, by name."""
        found = sorted(path for path in repository.folder.rglob("*") if path.is_file())
        return [self._describe(repository, path) for path in found]

    def file(self, repository: Repository, name: str) -> File | None:
        """One file; None if there is none or the name leads out of the repository."""
        path = (repository.folder / name).resolve()
        if not path.is_relative_to(repository.folder) or not path.is_file():
            return None
        return self._describe(repository, path)

    def use(self, what: str, file: str) -> int:
        """How often this was asked, this time included."""
        with self._lock:
            self._uses[what, file] = self._uses.get((what, file), 0) + 1
            return self._uses[what, file]

    def _describe(self, repository: Repository, path: Path) -> File:
        status = path.stat()
        large = path.name.endswith(LARGE)
        key = (str(path), status.st_size, status.st_mtime_ns)
        if key not in self._known:
            self._known[key] = _digest(path, status.st_size, large)
        name = str(path.relative_to(repository.folder))
        return File(path, name, status.st_size, self._known[key], large)


def _digest(path: Path, size: int, large: bool) -> str:
    running = hashlib.sha256() if large else hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            running.update(chunk)
    return running.hexdigest()
