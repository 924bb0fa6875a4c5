"""Image layers: a directory as a gzip'd tar of the same bytes for the same files at any time."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, cast

NEVER = ("dev", "proc", "sys")  # the container runtime fills these itself


@dataclass(frozen=True)
class Layer:
    """One layer's file, its digest and size as stored, and the digest of the tar inside."""

    path: Path
    digest: str
    size: int
    diff_id: str


class _Digesting(io.RawIOBase):
    """A file to write to that keeps the SHA-256 of what went through."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._hash = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._hash.update(data)
        return self._file.write(data)

    def digest(self) -> str:
        """The digest so far, as registries write it."""
        return f"sha256:{self._hash.hexdigest()}"


def make_layer(tree: Path, path: Path) -> Layer:
    """Pack a directory. Everything belongs to root and is of 1970; only names, modes and content count."""
    with path.open("wb") as file:
        stored = _Digesting(file)
        with gzip.GzipFile("", "wb", compresslevel=1, fileobj=stored, mtime=0) as packed:
            plain = _Digesting(cast(IO[bytes], packed))
            with tarfile.open(fileobj=plain, mode="w|", format=tarfile.PAX_FORMAT) as tar:
                for item in sorted(tree.rglob("*")):
                    name = item.relative_to(tree)
                    if len(name.parts) == 1 or name.parts[0] not in NEVER:
                        _add(tar, item, str(name))
    layer = Layer(path, stored.digest(), path.stat().st_size, plain.digest())
    described = {**asdict(layer), "path": path.name}
    path.with_suffix(".json").write_text(json.dumps(described, indent=2) + "\n")
    return layer


def read_layer(path: Path) -> Layer | None:
    """A layer that was made before, or None if it was not finished."""
    described = path.with_suffix(".json")
    if not described.is_file() or not path.is_file():
        return None
    found = json.loads(described.read_text())
    return Layer(path, found["digest"], found["size"], found["diff_id"])


def _add(tar: tarfile.TarFile, item: Path, name: str) -> None:
    entry = tar.gettarinfo(item, name)
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    if entry.isreg():
        with item.open("rb") as content:
            tar.addfile(entry, content)
    else:
        tar.addfile(entry)
