"""Archives for the kernel's initial file system (`cpio -H newc`); several in a row are unpacked in order."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass

_LAST = "TRAILER!!!"


@dataclass(frozen=True)
class Entry:
    """A file, or with a mode that says so a folder. `path` has no leading slash."""

    path: str
    content: bytes = b""
    mode: int = stat.S_IFREG | 0o644
    owner: int = 0


def with_folders(entries: Iterable[Entry]) -> list[Entry]:
    """The entries with the folders that they lie in; a folder that is an entry itself keeps its own mode."""
    found: dict[str, Entry] = {}
    given = {entry.path: entry for entry in entries}
    for path, entry in sorted(given.items()):
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            found.setdefault(folder, given.get(folder) or Entry(folder, mode=stat.S_IFDIR | 0o755))
        found[path] = entry
    return list(found.values())


def archive(entries: Iterable[Entry]) -> bytes:
    """The archive, padded so that another one can follow."""
    text = b"".join(_record(number, entry) for number, entry in enumerate(with_folders(entries), 1))
    return _padded(text + _record(0, Entry(_LAST, mode=0)), 512)


def _record(inode: int, entry: Entry) -> bytes:
    name = entry.path.encode() + b"\0"
    fields = (inode, entry.mode, entry.owner, entry.owner, 1, 0, len(entry.content), 0, 0, 0, 0, len(name), 0)
    header = b"070701" + "".join(f"{field:08x}" for field in fields).encode()
    return _padded(header + name, 4) + _padded(entry.content, 4)


def _padded(data: bytes, size: int) -> bytes:
    return data + b"\0" * (-len(data) % size)
