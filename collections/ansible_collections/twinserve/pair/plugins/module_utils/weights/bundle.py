"""Take one pinned snapshot from a folder on this node that is like a Hugging Face cache, without network."""

from __future__ import annotations

import os
import pwd
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from .. import hf_cache, page_cache, progress
from .errors import WeightsError

_PIECE = 4 << 20
_PART = ".twinserve-part"


def take(home: str, repo: str, revision: str, bundle: str, user: str | None = None) -> str:
    """Copy what is not here yet, payloads first; the sentence says how much. Raises WeightsError."""
    lacking, _ = hf_cache.lacking(bundle, repo, revision)
    if lacking:
        some = ", ".join(lacking[:3])
        raise WeightsError(f"{bundle} lacks {len(lacking)} files of {repo}@{revision[:8]} ({some})")
    names = hf_cache.transfer_list(hf_cache.snapshot_folder(bundle, repo, revision))
    # The hub's own list comes along: by it all is checked, as after a download.
    tree = hf_cache.repo_folder(bundle, repo) / "trees" / f"{revision}.json"
    if tree.is_file():
        names.append(str(tree.relative_to(Path(bundle, "hub"))))
    source, target = Path(bundle, "hub"), Path(home, "hub")
    copying = _Copying(_owner(user), sum((source / name).lstat().st_size for name in names))
    for name in names:
        copying.bring(source / name, target / name)
    return f"{repo}@{revision[:8]}: {len(names)} entries from {bundle}, {copying.done} bytes looked at"


def _owner(user: str | None) -> tuple[int, int] | None:
    if user is None or os.getuid() != 0:
        return None
    entry = pwd.getpwnam(user)
    return entry.pw_uid, entry.pw_gid


@dataclass
class _Copying:
    """One file after the other: a disk that was carried here is read fastest so."""

    owner: tuple[int, int] | None
    total: int
    done: int = 0
    _meter: progress.Meter = field(default_factory=progress.Meter)
    _noted: float = 0.0

    def bring(self, source: Path, target: Path) -> None:
        """A file or a link, whole or not at all."""
        self._make_room(target.parent)
        if source.is_symlink():
            self._link(source, target)
        elif target.is_file() and not target.is_symlink() and _size(target) == _size(source):
            self._count(_size(source))
        else:
            self._copy(source, target)

    def _link(self, source: Path, target: Path) -> None:
        if target.is_symlink() and target.readlink() == source.readlink():
            return
        fresh = target.with_name(f"{target.name}{_PART}")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(source.readlink())
        self._give(fresh)
        fresh.replace(target)

    def _copy(self, source: Path, target: Path) -> None:
        fresh = target.with_name(f"{target.name}{_PART}")
        try:
            with source.open("rb", buffering=0) as there, fresh.open("wb") as here:
                while piece := there.read(_PIECE):
                    here.write(piece)
                    self._count(len(piece))
            shutil.copystat(source, fresh)
            page_cache.settle(fresh)
            page_cache.forget(source)
            self._give(fresh)
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)

    def _make_room(self, folder: Path) -> None:
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir()
            self._give(one)

    def _give(self, path: Path) -> None:
        if self.owner:
            os.lchown(path, *self.owner)

    def _count(self, size: int) -> None:
        self.done += size
        if (now := time.monotonic()) - self._noted >= 2:
            self._noted = now
            self._meter.add(now, self.done)
            progress.note(self._meter.numbers(self.total, time.time()))


def _size(path: Path) -> int:
    return path.stat().st_size
