"""Read every byte of a snapshot and compare it with the hub's hashes, whatever was found before (M-06)."""

from __future__ import annotations

import json
import threading
import time

from .. import content_check, hf_cache, progress
from .errors import WeightsError


def verify(home: str, repo: str, revision: str, host: str) -> str:
    """The sentence says what was read. Raises WeightsError, and takes the old verdict back."""
    noted = hf_cache.manifest_path(repo, revision)
    snapshot = hf_cache.snapshot_folder(home, repo, revision)
    if not noted.is_file():
        raise WeightsError(f"{host}: {repo}@{revision[:8]} was never seen whole: run prepare.yml")
    manifest = json.loads(noted.read_text())
    files, digests = manifest["files"], manifest["digests"]
    wrong = hf_cache.differences(snapshot, files) or content_check.uncheckable(files, digests)
    wrong = wrong or content_check.wrong_content(snapshot, digests, _Told(sum(files.values())))
    if wrong:
        noted.unlink()
        more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise WeightsError("; ".join(f"{host}: {one}" for one in wrong[:3]) + more)
    return f"{repo}@{revision[:8]}: {len(files)} files, {sum(files.values())} bytes, as the hub has them"


class _Told:
    """Counts what several readers have read, and notes it every other second and at the end."""

    def __init__(self, total: int) -> None:
        self._total, self._read, self._noted = total, 0, 0.0
        self._meter, self._lock = progress.Meter(), threading.Lock()

    def __call__(self, count: int) -> None:
        with self._lock:
            self._read += count
            now = time.monotonic()
            if now - self._noted >= 2 or self._read >= self._total:
                self._noted = now
                self._meter.add(now, self._read)
                progress.note(self._meter.numbers(self._total, time.time()))
