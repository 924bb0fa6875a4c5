"""The head's key files, made by the real ssh-keygen: whole at every moment, told apart when interrupted."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import key_files
from ansible_collections.twinserve.pair.plugins.modules import head_keys
from module_run import run_module

pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "etc/keys"


def usable(folder: Path, name: str) -> bool:
    """Whether the private half is the public one's."""
    said = subprocess.run(
        ["ssh-keygen", "-y", "-f", folder / name], capture_output=True, text=True, check=True
    ).stdout
    return " ".join(said.split()[:2]) == key_files.public_key(folder / name)


def test_a_key_is_made_once(folder: Path) -> None:
    assert key_files.make(folder, "control")
    made = key_files.public_key(folder / "control")
    assert made and made.startswith("ssh-ed25519 ") and usable(folder, "control")
    assert (folder / "control.pub").read_text().endswith(" twinserve-control\n")
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "control")] == [0o700, 0o600]
    assert not key_files.make(folder, "control")
    assert key_files.public_key(folder / "control") == made
    assert sorted(path.name for path in folder.iterdir()) == ["control", "control.pub"]


@pytest.mark.parametrize("half", ["control", "control.pub"])
def test_half_a_pair_is_no_key_and_made_whole(folder: Path, half: str) -> None:
    key_files.make(folder, "control")
    (folder / half).unlink()
    assert key_files.read(folder)["control"] == ""
    assert key_files.make(folder, "control") and usable(folder, "control")


def test_a_successor_takes_its_place_and_then_goes(folder: Path) -> None:
    for name in ("control", "control.next"):
        key_files.make(folder, name)
    new = str(key_files.public_key(folder / "control.next"))
    assert not key_files.drop(folder, "control"), "one that waits for its turn stays"
    assert key_files.promote(folder, "control", new)
    assert key_files.public_key(folder / "control") == new and usable(folder, "control")
    assert usable(folder, "control.next"), "whoever is logging in just now still needs it"
    assert (folder / "control").stat().st_mode & 0o777 == 0o600
    assert not key_files.promote(folder, "control", new)
    assert key_files.drop(folder, "control")
    assert sorted(path.name for path in folder.iterdir()) == ["control", "control.pub"]


def test_a_promotion_that_was_cut_off_is_done_again(folder: Path) -> None:
    for name in ("control", "control.next"):
        key_files.make(folder, name)
    new = str(key_files.public_key(folder / "control.next"))
    (folder / "control").write_bytes((folder / "control.next").read_bytes())
    (folder / ".left-by-a-killed-run").mkdir()
    assert key_files.promote(folder, "control", new) and usable(folder, "control")
    assert not (folder / ".left-by-a-killed-run").exists()


def test_another_runs_successor_is_not_taken(folder: Path) -> None:
    for name in ("control", "control.next"):
        key_files.make(folder, name)
    with pytest.raises(key_files.KeysChanged, match=r"control\.next is ssh-ed25519 .* SEEN was seen"):
        key_files.promote(folder, "control", "ssh-ed25519 SEEN")


def test_the_module_predicts_and_does(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where: dict[str, Any] = {"path": str(folder), "known_hosts": str(folder.parent / "known_hosts")}
    foreseen = run_module(head_keys, capsys, check=True, make=["control", "copy"], **where)
    assert foreseen["changed"] and foreseen["diff"]["after"] == "make control\nmake copy\n"
    assert not folder.exists()
    done = run_module(head_keys, capsys, make=["control", "copy"], **where)
    assert done["changed"] and "control ssh-ed25519" in done["diff"]["after"]
    assert "PRIVATE" not in str(done)
    assert not run_module(head_keys, capsys, make=["control", "copy"], **where)["changed"]
    refused = run_module(head_keys, capsys, promote={"control": "ssh-ed25519 X"}, **where)
    assert refused["failed"] and "the head's keys" in refused["msg"]


def test_the_way_back_takes_folders_that_are_empty(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key_files.make(folder, "control")
    known, others = folder.parent / "known_hosts", folder.parent / "pair.json"
    known.touch()
    others.touch()
    where: dict[str, Any] = {"path": str(folder), "known_hosts": str(known), "state": "absent"}
    assert run_module(head_keys, capsys, check=True, **where)["changed"] and folder.exists()
    assert run_module(head_keys, capsys, **where)["changed"]
    assert list(folder.parent.iterdir()) == [others]
    others.unlink()
    folder.mkdir()
    assert run_module(head_keys, capsys, **where)["changed"] and not folder.parent.exists()
    assert not run_module(head_keys, capsys, **where)["changed"]
