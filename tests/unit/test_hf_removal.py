"""Snapshots leave a cache without taking anything that another one needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import hf_removal

OLD, NEW = "a" * 40, "b" * 40
FOLDER = "models--org--name"


def put(hub: Path, folder: str, revision: str, **files: str) -> None:
    """A snapshot whose files are links to blobs named by content; some lead on into the store."""
    top = hub / folder
    for path in (top / "blobs", top / "snapshots" / revision, top / "refs", hub / "blobs"):
        path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        blob = top / "blobs" / content
        if content.startswith("shared"):
            (hub / "blobs" / content).write_text(content * 1000)
            if not blob.is_symlink():
                blob.symlink_to(f"../../blobs/{content}")
        else:
            blob.write_text(content * 1000)
        (top / "snapshots" / revision / name).symlink_to(f"../../blobs/{content}")
    (top / "refs" / ("main" if revision == NEW else "v1")).write_text(revision)


def take(hub: Path, *snapshots: tuple[str, str]) -> None:
    for removal in hf_removal.plan(hub, snapshots):
        hf_removal.remove(removal)


def left(hub: Path) -> set[str]:
    return {str(path.relative_to(hub)) for path in hub.rglob("*") if not path.is_dir() or path.is_symlink()}


def test_the_last_snapshot_takes_its_repository_with_it(tmp_path: Path) -> None:
    put(tmp_path, FOLDER, OLD, config="c1", weights="shared1")
    put(tmp_path, "models--other--one", NEW, config="c2")

    (removal,) = hf_removal.plan(tmp_path, {(FOLDER, OLD)})
    assert removal.size >= 7000
    hf_removal.remove(removal)

    assert not (tmp_path / FOLDER).exists()
    assert not (tmp_path / "blobs/shared1").exists()
    assert (tmp_path / "models--other--one/snapshots" / NEW / "config").read_text() == "c2" * 1000


def test_what_another_revision_uses_stays(tmp_path: Path) -> None:
    put(tmp_path, FOLDER, OLD, config="old", weights="same")
    put(tmp_path, FOLDER, NEW, config="new", weights="same")

    take(tmp_path, (FOLDER, OLD))

    assert left(tmp_path) == {
        f"{FOLDER}/blobs/new", f"{FOLDER}/blobs/same", f"{FOLDER}/refs/main",
        f"{FOLDER}/snapshots/{NEW}/config", f"{FOLDER}/snapshots/{NEW}/weights",
    }  # fmt: skip


def test_what_another_repository_shares_stays(tmp_path: Path) -> None:
    put(tmp_path, FOLDER, OLD, weights="shared1")
    put(tmp_path, "models--other--one", NEW, weights="shared1")

    take(tmp_path, (FOLDER, OLD))

    assert (tmp_path / "models--other--one/snapshots" / NEW / "weights").read_text() == "shared1" * 1000


@pytest.mark.parametrize("other", ["datasets--org--data", "spaces--org--app"])
def test_what_a_data_set_or_a_space_shares_stays(tmp_path: Path, other: str) -> None:
    put(tmp_path, FOLDER, OLD, weights="shared1")
    put(tmp_path, other, NEW, data="shared1")

    take(tmp_path, (FOLDER, OLD))

    assert (tmp_path / other / "snapshots" / NEW / "data").read_text() == "shared1" * 1000


def test_of_a_repository_that_was_laid_elsewhere_only_the_snapshot_and_the_link_go(tmp_path: Path) -> None:
    hub, disk = tmp_path / "hub", tmp_path / "disk"
    put(hub, FOLDER, OLD, config="c1")
    (hub / FOLDER).rename(disk)
    (hub / FOLDER).symlink_to(disk)
    (disk / "notes.txt").write_text("mine")

    take(hub, (FOLDER, OLD))

    assert not (hub / FOLDER).is_symlink()
    assert left(disk) == {"notes.txt"}


def test_a_link_that_leads_out_of_the_cache_takes_nothing_there(tmp_path: Path) -> None:
    hub, elsewhere = tmp_path / "hub", tmp_path / "mine.bin"
    put(hub, FOLDER, OLD, config="c1")
    elsewhere.write_text("mine")
    (hub / FOLDER / "snapshots" / OLD / "mine.bin").symlink_to(elsewhere)

    take(hub, (FOLDER, OLD))

    assert elsewhere.read_text() == "mine"
    assert not (hub / FOLDER).exists()


def test_a_snapshot_that_is_not_here_takes_nothing(tmp_path: Path) -> None:
    put(tmp_path, FOLDER, NEW, config="new")
    assert hf_removal.plan(tmp_path, {(FOLDER, OLD)}) == []


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (f"org--name@{OLD}.json", [(FOLDER, OLD)]),
        (f"org--name@{OLD}.hub.json", []),
        ("notes.json", []),
    ],
)
def test_what_was_verified_here_is_known_by_its_manifest(
    tmp_path: Path, name: str, found: list[tuple[str, str]]
) -> None:
    (tmp_path / name).write_text("{}")
    assert hf_removal.ours(tmp_path) == found
