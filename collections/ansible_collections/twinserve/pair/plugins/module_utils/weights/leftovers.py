"""What earlier downloads left in the cache: what nobody can go on with, and payloads of the wrong size."""

from __future__ import annotations

from pathlib import Path

from .. import hf_blobs, hf_cache
from .locks import lock_path, read_lock


def not_whole(home: str, repo: str, revision: str) -> set[str]:
    """Etags of payloads that are not there; without the hub's list, those that a lock file names."""
    blobs = hf_cache.repo_folder(home, repo) / "blobs"
    wanted = set(hf_blobs.by_etag(hf_cache.hub_list(home, repo, revision)))
    if not wanted:
        wanted = {path.stem for path in lock_path(home, repo, "x").parent.glob("*.lock")}
    return {etag for etag in wanted if not (blobs / etag).exists()}


def remove(home: str, repo: str, revision: str) -> list[str]:
    """Remove it, unless somebody works on it; a line for each kind.

    A payload that is shorter or longer than the hub says would never be mended: the client takes what has the
    right name for whole.
    """
    folder = hf_cache.repo_folder(home, repo) / "blobs"
    wanted = hf_blobs.by_etag(hf_cache.hub_list(home, repo, revision))
    said = []
    old = [path for path in sorted(folder.glob("*.incomplete")) if _is_left(path, home, repo)]
    if old:
        size = sum(path.stat().st_blocks * 512 for path in old)
        said.append(f"removed {len(old)} files of downloads that were cut off ({size / 1e9:.1f} GB)")
    for path in old:
        path.unlink()
    for etag, size in wanted.items():
        blob = folder / etag
        if blob.is_file() and (found := blob.stat().st_size) != size and not _is_held(home, repo, etag):
            said.append(f"removed {blob.resolve()}: {found} bytes instead of {size}")
            blob.resolve().unlink()
            blob.unlink(missing_ok=True)
    return said


def _is_left(path: Path, home: str, repo: str) -> bool:
    match = hf_blobs.LEFTOVER.fullmatch(path.name)
    return match is not None and not _is_held(home, repo, match[1])


def _is_held(home: str, repo: str, etag: str) -> bool:
    try:
        return read_lock(lock_path(home, repo, etag)).holder is not None
    except FileNotFoundError:
        return False
