"""Take snapshots out of a Hugging Face cache, and nothing that any other snapshot in it still uses."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from .hf_cache import MANIFESTS


@dataclass(frozen=True)
class Removal:
    """What goes with a snapshot: files and links, then whole folders; `size` is in bytes on disk."""

    snapshot: Path
    files: tuple[Path, ...]
    folders: tuple[Path, ...]
    size: int


def ours(manifests: Path = MANIFESTS) -> list[tuple[str, str]]:
    """Folder in the cache and revision of each snapshot that was verified on this node."""
    names = [path.stem for path in sorted(manifests.glob("*@*.json")) if not path.name.endswith(".hub.json")]
    return [(f"models--{repo}", revision) for repo, _, revision in (name.rpartition("@") for name in names)]


def plan(hub: Path, snapshots: Collection[tuple[str, str]]) -> list[Removal]:
    """One removal for each of `snapshots` (folder and revision) that is in the cache."""
    going = {hub / folder / "snapshots" / revision for folder, revision in snapshots}
    # Data sets and spaces, too: all kinds share one store.
    staying = {path for path in hub.glob("*--*/snapshots/*") if path not in going}
    used = {hop for snapshot in staying for hop in _hops(snapshot, hub)}
    removals = []
    for snapshot in sorted(path for path in going if path.is_dir()):
        hops = sorted({hop for hop in _hops(snapshot, hub) if hop not in used})
        folder = snapshot.parent.parent
        last = not any(path.parent.parent == folder for path in staying)
        folders = (folder, hub / ".locks" / folder.name) if last else (snapshot,)
        if last and folder.is_symlink():
            folders = (snapshot, *folders)
        size = sum(map(_size, [*hops, *snapshot.rglob("*")]))
        removals.append(Removal(snapshot, (*hops, *_notes(snapshot)), folders, size))
    return removals


def remove(removal: Removal) -> None:
    """Take it away, payloads first: as long as the snapshot stands, the next run plans its removal again."""
    for path in removal.files:
        path.unlink(missing_ok=True)
    for folder in removal.folders:
        if folder.is_symlink():
            folder.unlink()  # laid elsewhere by somebody: what else is there is not ours
        elif folder.is_dir():
            shutil.rmtree(folder)


def _hops(snapshot: Path, hub: Path) -> Iterator[Path]:
    """Each link that a file of the snapshot goes by, and its payload; never anything outside of the cache."""
    for folder, _, names in os.walk(snapshot):
        for path in (Path(folder, name) for name in names):
            seen, place = set(), path
            while place.is_symlink() and place not in seen:
                seen.add(place)
                place = Path(os.path.normpath(place.parent / place.readlink()))
                if hub in place.parents:
                    yield place


def _notes(snapshot: Path) -> Iterator[Path]:
    """What the client notes of a revision beside its files: its list, and the names that mean it."""
    folder, revision = snapshot.parent.parent, snapshot.name
    tree = folder / "trees" / f"{revision}.json"
    if tree.is_file():
        yield tree
    for ref in (folder / "refs").rglob("*"):
        if ref.is_file() and ref.read_text(errors="replace").strip() == revision:
            yield ref


def _size(path: Path) -> int:
    return path.stat().st_blocks * 512 if path.is_file() and not path.is_symlink() else 0
