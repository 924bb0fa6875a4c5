"""Is a pinned snapshot whole, and what makes it up: in both layouts of the cache."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import (
    content_check,
    hf_blobs,
    hf_cache,
    model_transfer,
)
from ansible_collections.twinserve.pair.plugins.module_utils.hf_blobs import PARTIAL
from ansible_collections.twinserve.pair.plugins.modules import hf_snapshot
from hub_cache import FILES, LARGE, REPO, REVISION, fill, git_hash, sha256
from module_run import run_module

SIZES = {name: len(data) for name, data in FILES.items()}
DIGESTS = {
    name: f"sha256:{sha256(data)}" if name in LARGE else f"git:{git_hash(data)}"
    for name, data in FILES.items()
}
FIRST, SECOND = LARGE


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache root, with what the module writes elsewhere brought below the same folder."""
    monkeypatch.setattr(hf_cache, "MANIFESTS", tmp_path / "manifests")
    monkeypatch.setattr(model_transfer, "LISTS", str(tmp_path / "lists"))
    return tmp_path / "hf"


def verify(capsys: pytest.CaptureFixture[str], home: Path, **more: Any) -> dict[str, Any]:
    return run_module(hf_snapshot, capsys, hf_home=str(home), repo=REPO, revision=REVISION, **more)


def complete(home: Path) -> hf_cache.SnapshotState:
    return hf_cache.snapshot_state(str(home), REPO, REVISION)


@pytest.mark.parametrize("shared", [False, True])
def test_both_layouts_list_alike(home: Path, shared: bool) -> None:
    snapshot = fill(home, shared=shared)
    assert hf_cache.list_snapshot(snapshot) == SIZES
    assert [name for name, _ in hf_cache.walk(snapshot)] == sorted(FILES)


def test_the_hubs_list_has_sizes_and_digests(home: Path) -> None:
    fill(home)
    manifest = hf_cache.manifest_from_disk(str(home), REPO, REVISION)
    assert manifest["files"] == SIZES
    assert manifest["digests"] == DIGESTS


@pytest.mark.parametrize("tree", ['{"format_version": 2, "files": {}}', "{torn", "[]", None])
def test_without_a_list_that_we_know_the_disk_is_all_there_is(home: Path, tree: str | None) -> None:
    fill(home, tree=False)
    if tree:
        path = home / f"hub/models--o--n/trees/{REVISION}.json"
        path.parent.mkdir()
        path.write_text(tree)
    assert hf_cache.manifest_from_disk(str(home), REPO, REVISION) == {"files": SIZES, "digests": DIGESTS}


def test_a_full_folder_counts_only_once_it_was_verified(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(home)
    state = complete(home)
    assert (state.complete, state.reason) == (False, "not verified on this node yet")
    assert (state.here, state.missing, state.others) == (sum(SIZES.values()), 0, [])
    assert sorted(state.blobs.values()) == sorted(SIZES.values())
    predicted = verify(capsys, home, check=True)
    assert predicted["changed"]
    assert not complete(home).complete
    noted = verify(capsys, home)
    assert (noted["changed"], noted["size"]) == (True, sum(SIZES.values()))
    assert complete(home) == hf_cache.SnapshotState(True, "", len(FILES), sum(SIZES.values()))
    assert not verify(capsys, home)["changed"]
    (home / f"hub/models--o--n/snapshots/{REVISION}/{FIRST}").unlink()
    assert complete(home).reason == f"1 of 4 files: {FIRST} is missing"


@pytest.mark.parametrize("shared", [False, True])
def test_m05_a_download_that_said_success_and_is_incomplete(
    home: Path, capsys: pytest.CaptureFixture[str], shared: bool
) -> None:
    snapshot = fill(home, shared=shared)
    (snapshot / SECOND).unlink()
    (home / "hub/models--o--n/blobs/abc.incomplete").write_bytes(b"x")
    answer = verify(capsys, home)
    assert answer["msg"] == f"o/n@9eaebb7c incomplete: 1 of 4 files ({SECOND} is missing)"
    assert not complete(home).complete


def test_m05_without_the_hubs_list_unfinished_downloads_are_looked_for(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = fill(home, tree=False)
    (snapshot / SECOND).unlink()
    (home / "hub/models--o--n/blobs/abc.incomplete").write_bytes(b"x")
    assert "abc.incomplete is unfinished" in verify(capsys, home)["msg"]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("tree", [False, True])
def test_m01_links_without_weights_are_no_files(
    home: Path, capsys: pytest.CaptureFixture[str], shared: bool, tree: bool
) -> None:
    snapshot = fill(home, shared=shared, tree=tree)
    (snapshot / FIRST).resolve().unlink()
    assert f"1 of 4 files ({FIRST} is missing)" in verify(capsys, home)["msg"]


def test_m01_the_worker_must_have_what_the_head_has(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = fill(home, tree=False)
    (snapshot / FIRST).resolve().write_bytes(b"short")
    expected = {"files": SIZES, "digests": {}}
    answer = verify(capsys, home, expected=expected)
    assert answer["wrong"] == [f"{FIRST} has 5 bytes instead of {SIZES[FIRST]}"]


def test_m04_what_the_worker_has_in_another_layout_is_whole(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Payloads have other names there: all of them would be sent, and none is needed."""
    manifest = hf_cache.manifest_from_disk(str(fill(home).parents[3]), REPO, REVISION)
    worker = home.parent / "worker"
    snapshot = fill(worker, shared=True, tree=False)
    asked: dict[str, Any] = {"compare": True, "expected": manifest}
    assert verify(capsys, worker, **asked)["wrong"] == []
    (snapshot / FIRST).resolve().unlink()
    answer = verify(capsys, worker, **asked)
    assert (answer["failed"], answer["wrong"]) == (False, [f"{FIRST} is missing"])
    assert not hf_cache.manifest_path(REPO, REVISION).exists()


def test_an_absent_snapshot_has_no_file_at_all(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(capsys, home)["msg"] == "o/n@9eaebb7c incomplete: 0 of 0 files (no file at all)"


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("begun", ["incomplete", "0a1b2c3d.incomplete"])
def test_m04_blobs_of_a_download_that_was_cut_off_are_counted(home: Path, shared: bool, begun: str) -> None:
    snapshot = fill(home, shared=shared)
    blob = home / "hub/models--o--n/blobs" / sha256(FILES[SECOND])
    blob.resolve().unlink()
    blob.unlink(missing_ok=True)
    (snapshot / SECOND).unlink()
    blob.with_name(f"{blob.name}.{begun}").write_bytes(FILES[SECOND][:5])
    state = complete(home)
    assert (state.here, state.missing) == (sum(SIZES.values()) - SIZES[SECOND] + 5, SIZES[SECOND] - 5)


def test_m04_what_only_another_revision_uses_counts_where_the_hubs_list_names_it(home: Path) -> None:
    snapshot = fill(home)
    snapshot.rename(snapshot.with_name("b" * 40))
    assert (complete(home).here, complete(home).missing) == (0, 0)
    assert complete(home).others == ["b" * 40]
    (home / f"hub/models--o--n/trees/{REVISION}.json").unlink()
    assert (complete(home).here, complete(home).missing) == (0, None)


def test_m07_paths_of_others_are_found(home: Path, tmp_path: Path) -> None:
    snapshot = fill(home)
    (home / "hub/models--x--y").mkdir()
    (home / "token").write_text("of no concern")
    uid = os.getuid()
    assert hf_cache.not_owned(str(home), [REPO], uid) == {"count": 0, "first": ""}
    paths = [path for path in snapshot.parent.parent.rglob("*")]
    everything = hf_cache.not_owned(str(home), [REPO], uid + 1)
    assert everything == {"count": len(paths) + 3, "first": str(home)}
    assert hf_cache.not_owned(str(tmp_path / "absent"), [REPO], uid + 1)["count"] == 0


def test_large_files_are_hashed_in_pieces(tmp_path: Path) -> None:
    data = b"x" * (4 << 20) + b"end"
    path = tmp_path / "large"
    path.write_bytes(data)
    assert content_check.file_digest(path, "sha256") == sha256(data)
    assert content_check.file_digest(path, "git") == git_hash(data)


def bring(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.symlink_to(source.readlink())
    else:
        target.write_bytes(source.read_bytes())


@pytest.mark.parametrize("shared", [False, True])
def test_m04_a_copy_that_was_cut_off_is_counted(home: Path, shared: bool) -> None:
    hub = fill(home, shared=shared).parents[2]
    worker = home.parent / "worker"
    for name in hf_cache.transfer_list(hf_cache.snapshot_folder(str(home), REPO, REVISION)):
        if "snapshots" not in name:
            bring(hub / name, worker / "hub" / name)
    blobs = worker / "hub/models--o--n/blobs"
    blob = blobs / sha256(FILES[SECOND])
    # In the middle of one payload; what else is begun is a download's, and will not be gone on with.
    growing = worker / PARTIAL / blob.resolve().name
    growing.parent.mkdir()
    growing.write_bytes(FILES[SECOND][:5])
    (blob.resolve().parent / PARTIAL).mkdir()
    (blob.resolve().parent / PARTIAL / growing.name).touch()
    blob.resolve().unlink()
    (blobs / f"{blob.name}.0a1b2c3d.incomplete").write_bytes(FILES[SECOND][:9])
    state = hf_cache.snapshot_state(str(worker), REPO, REVISION, copied=True)
    wanted = hf_blobs.by_etag(hf_cache.hub_list(str(home), REPO, REVISION))
    assert hf_blobs.missing(wanted, state.blobs) == SIZES[SECOND] - 5


@pytest.mark.parametrize("shared", [False, True])
def test_m01_the_copy_takes_payloads_first_and_every_hop_of_the_links(home: Path, shared: bool) -> None:
    snapshot = fill(home, shared=shared)
    listed = hf_cache.transfer_list(snapshot)
    hub = home / "hub"
    assert len(set(listed)) == len(listed) == len(FILES) * (3 if shared else 2) + shared
    assert (listed[0] == "blobs/.huggingface-shared-blobs") is shared, "the client takes no other store"
    copied, last = home.parent / "copy/hub", ""
    for name in listed:
        target = copied / name
        bring(hub / name, target)
        assert target.exists(), "no link comes before what it leads to"
        if target.is_symlink() and "snapshots" not in target.parts:
            assert hub / last == (hub / name).resolve(), "a blob comes with its payload"
        last = name
    arrived = copied / snapshot.relative_to(hub)
    assert {name: (arrived / name).read_bytes() for name in FILES} == FILES


def test_two_names_of_one_file_travel_once(home: Path) -> None:
    snapshot = fill(home, files={"a.txt": b"same", "b.txt": b"same"})
    listed = hf_cache.transfer_list(snapshot)
    assert [name for name in listed if "/blobs/" in name] == [f"models--o--n/blobs/{git_hash(b'same')}"]


def test_m14_a_link_out_of_the_cache_is_refused(home: Path, tmp_path: Path) -> None:
    snapshot = fill(home)
    (tmp_path / "outside").write_bytes(b"x")
    (snapshot / "extra").symlink_to(tmp_path / "outside")
    with pytest.raises(ValueError, match="outside is outside .*hub"):
        hf_cache.transfer_list(snapshot)


def test_the_list_for_a_worker_is_left_where_rsync_reads_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = fill(home)
    assert not verify(capsys, home, list_for="spark-b")["failed"]
    listed = Path(model_transfer.list_file(REPO, REVISION, "spark-b")).read_text()
    assert listed.splitlines() == hf_cache.transfer_list(snapshot)


@pytest.mark.parametrize("text", ["", "{}", '{"files": '])
def test_a_manifest_that_was_torn_is_none(home: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    fill(home)
    verify(capsys, home)
    hf_cache.manifest_path(REPO, REVISION).write_text(text)
    assert not complete(home).complete
    assert verify(capsys, home)["changed"]
    assert complete(home).complete


def test_a_manifest_is_plain_data(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(home)
    verify(capsys, home)
    noted = hf_cache.manifest_path(REPO, REVISION)
    assert noted.name == f"o--n@{REVISION}.json"
    assert json.loads(noted.read_text())["files"] == SIZES
