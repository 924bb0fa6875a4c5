"""Configurations that served and passed verification, kept on each node: the last one, and the one before it.

A configuration is a folder with the files as they stood, at their own paths below it, and `about.json`. All
nodes of a pair keep it under one id. A folder comes and goes by renaming, so that whenever a run is
interrupted at least one that is whole is left.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .atomic_file import replace
from .managed_files import UNITS, fingerprint, read_fingerprints

GOOD = Path("/var/lib/twinserve/good")
_PLACES = ("current", "previous")
_ABOUT = "about.json"


class GoodError(RuntimeError):
    """A kept configuration that cannot be used; the text says why."""


@dataclass(frozen=True)
class File:
    """One file of a kept configuration."""

    path: Path
    content: bytes
    mode: int

    @property
    def is_unit(self) -> bool:
        """Whether systemd has to read it."""
        return str(self.path).startswith(UNITS)


def read_good(root: Path = GOOD) -> list[dict[str, Any]]:
    """What is kept on this node, the last one first; `files` are fingerprints by path."""
    return [about for about in (_about(root / place) for place in _PLACES) if about]


def keep(about: Mapping[str, Any], paths: Iterable[str], root: Path = GOOD) -> None:
    """Keep the files at `paths` as they stand now, as the last configuration that was good.

    What was the last one becomes the one before it, unless it is the same in another form (same id).
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    staged, current, previous = (root / name for name in (".new", *_PLACES))
    # What is replaced by another form of itself, and what is dropped.
    old, gone = root / ".old", root / ".gone"
    if not current.exists() and _about(old):
        # The keeping before this one was interrupted between its two renamings.
        old.rename(current)
    for left in (staged, old, gone):
        _remove(left)
    staged.mkdir(mode=0o700)
    files = read_fingerprints(paths)
    for path in map(Path, files):
        target = _inside(staged, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        replace(target, path.read_bytes(), path.stat().st_mode & 0o7777)
    text = json.dumps({**about, "files": files}, indent=1, sort_keys=True)
    replace(staged / _ABOUT, text.encode(), 0o600)
    if current.exists() and _about(current).get("id") != about["id"]:
        if previous.exists():
            previous.rename(gone)
        current.rename(previous)
    elif current.exists():
        current.rename(old)
    staged.rename(current)
    for left in (old, gone):
        _remove(left)


def differing(which: str, root: Path = GOOD) -> tuple[dict[str, Any], list[File]]:
    """The kept configuration with this id, and its files that stand otherwise now.

    Raises GoodError when it is not here, or not as it was kept.
    """
    for folder in (root / place for place in _PLACES):
        about = _about(folder)
        if about.get("id") == which:
            present = read_fingerprints(about["files"])
            other = [path for path, known in about["files"].items() if present.get(path) != known]
            return about, [_read(folder, path, about["files"][path]) for path in other]
    raise GoodError(f"no configuration {which} is kept here")


def restore(files: Iterable[File]) -> None:
    """Put files back, each at once."""
    for file in files:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        replace(file.path, file.content, file.mode, (0, 0))


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _about(folder: Path) -> dict[str, Any]:
    path = folder / _ABOUT
    about: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return about


def _read(folder: Path, path: str, known: str) -> File:
    kept = _inside(folder, Path(path))
    content, mode = kept.read_bytes(), kept.stat().st_mode & 0o7777
    if fingerprint(content.decode(errors="replace"), f"{mode:04o}") != known:
        raise GoodError(f"{kept} is not as it was kept")
    return File(Path(path), content, mode)


def _inside(folder: Path, path: Path) -> Path:
    return folder / path.relative_to("/")
