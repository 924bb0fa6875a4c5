"""Every byte is read, whatever an earlier check said, and the file to remove is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import content_check, hf_cache, progress
from ansible_collections.twinserve.pair.plugins.module_utils.weights import __main__ as program
from hub_cache import FILES, LARGE, REPO, REVISION, fill, sha256

FIRST, SECOND = LARGE
ALL = sum(len(data) for data in FILES.values())


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A snapshot that was found whole before."""
    monkeypatch.setattr(hf_cache, "MANIFESTS", tmp_path / "manifests")
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "progress.json"))
    snapshot = fill(tmp_path / "hf")
    noted = hf_cache.manifest_path(REPO, REVISION)
    noted.parent.mkdir()
    noted.write_text(json.dumps(hf_cache.manifest_from_disk(str(tmp_path / "hf"), REPO, REVISION)))
    return snapshot


def verify(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    home = str(snapshot.parents[3])
    place = ["--home", home, "--repo", REPO, "--revision", REVISION]
    code = program.main(["verify", *place, "--host", "spark-b"])
    return code, capsys.readouterr().out.splitlines()


def test_m06_all_bytes_are_right(snapshot: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = f"o/n@9eaebb7c: 4 files, {ALL} bytes, as the hub has them"
    assert verify(snapshot, capsys) == (0, [said])
    numbers = json.loads((tmp_path / "progress.json").read_text())
    assert numbers["bytes"] == numbers["total"] == ALL


@pytest.mark.parametrize(("name", "says"), [(FIRST, "sha256"), ("config.json", "content")])
def test_m06_the_file_to_remove_is_named_and_the_old_verdict_taken_back(
    snapshot: Path, capsys: pytest.CaptureFixture[str], name: str, says: str
) -> None:
    payload = (snapshot / name).resolve()
    payload.write_bytes(b"X" + FILES[name][1:])
    told = f"spark-b: {name} {says} differs: remove {payload} and run again"
    assert verify(snapshot, capsys) == (1, [told])
    assert not hf_cache.manifest_path(REPO, REVISION).exists()
    told = "spark-b: o/n@9eaebb7c was never seen whole: run prepare.yml"
    assert verify(snapshot, capsys) == (1, [told])


def test_m06_sizes_are_compared_first(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in FILES:
        (snapshot / name).resolve().unlink()
    (code, (said,)) = verify(snapshot, capsys)
    assert code == 1
    assert said.startswith("spark-b: config.json is missing; spark-b: ")
    assert said.endswith("; and 1 more")


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", [FIRST, "config.json"])
def test_m06_without_the_hubs_list_the_names_of_the_blobs_tell(
    snapshot: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, shared: bool
) -> None:
    bare = fill(tmp_path / "bare", tree=False, shared=shared)
    manifest = hf_cache.manifest_from_disk(str(tmp_path / "bare"), REPO, REVISION)
    hf_cache.manifest_path(REPO, REVISION).write_text(json.dumps(manifest))
    assert verify(bare, capsys)[0] == 0
    (bare / name).resolve().write_bytes(b"X" + FILES[name][1:])
    assert "differs: remove " in verify(bare, capsys)[1][0]


def test_m06_what_has_no_hash_does_not_pass(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noted = hf_cache.manifest_path(REPO, REVISION)
    manifest = json.loads(noted.read_text())
    del manifest["digests"][SECOND]
    noted.write_text(json.dumps(manifest))
    assert verify(snapshot, capsys) == (1, [f"spark-b: {SECOND} has no hash to compare with"])


def test_every_piece_is_told(tmp_path: Path) -> None:
    data = b"x" * (4 << 20) + b"end"
    (tmp_path / "large").write_bytes(data)
    seen: list[int] = []
    assert content_check.file_digest(tmp_path / "large", "sha256", seen.append) == sha256(data)
    assert seen == [4 << 20, 3]
