"""After a verified copy: on disk, out of the kernel's memory, nothing left over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import hf_cache, page_cache
from ansible_collections.twinserve.pair.plugins.module_utils.hf_blobs import PARTIAL
from ansible_collections.twinserve.pair.plugins.module_utils.settling import settle
from ansible_collections.twinserve.pair.plugins.modules import hf_snapshot
from hub_cache import FILES, REPO, REVISION, fill
from module_run import run_module


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hf_cache, "MANIFESTS", tmp_path / "manifests")
    return tmp_path / "cache"


@pytest.mark.parametrize("shared", [False, True])
def test_every_payload_is_settled_once_in_either_layout(
    home: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    snapshot = fill(home, shared=shared)
    settled: list[Path] = []
    monkeypatch.setattr(page_cache, "settle", settled.append)
    settle(str(home), snapshot)
    assert sorted(settled) == sorted({(snapshot / name).resolve() for name in FILES})
    assert not [path for path in settled if path.is_symlink()]


def test_leftovers_of_whole_files_go_and_those_of_others_stay(home: Path) -> None:
    snapshot = fill(home)
    partial = home / PARTIAL
    partial.mkdir()
    whole = (snapshot / "config.json").resolve().name
    for name in (whole, "of another copy"):
        (partial / name).write_text("half")
    beside = (snapshot / "config.json").resolve().parent / PARTIAL
    beside.mkdir()
    (beside / whole).touch()
    settle(str(home), snapshot)
    assert [path.name for path in partial.iterdir()] == ["of another copy"]
    assert not beside.exists()
    begun = (snapshot / "config.json").resolve().with_name(f".{whole}.Zuf4Ll")
    begun.write_text("half")
    (partial / "of another copy").unlink()
    settle(str(home), snapshot)
    assert not partial.exists() and not begun.exists()


def test_a_file_is_dropped_from_memory_and_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "blob"
    path.write_bytes(b"x" * 10_000)
    page_cache.settle(path)
    page_cache.forget(path)
    assert path.read_bytes() == b"x" * 10_000


def test_a_node_settles_before_it_notes_that_all_is_there(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(home)
    noted = hf_cache.manifest_path(REPO, REVISION)
    seen: list[bool] = []
    monkeypatch.setattr(hf_snapshot, "settle", lambda *_: seen.append(noted.exists()))
    given: dict[str, Any] = {"hf_home": str(home), "repo": REPO, "revision": REVISION}
    manifest = run_module(hf_snapshot, capsys, **given)["manifest"]
    run_module(hf_snapshot, capsys, **given)
    assert seen == [False], "what was downloaded here, and once"
    seen.clear()
    noted.unlink()
    assert run_module(hf_snapshot, capsys, check=True, **given, expected=manifest)["changed"]
    assert seen == []
    run_module(hf_snapshot, capsys, **given, expected=manifest)
    assert seen == [False]
    assert noted.exists()
