"""Our lines in a user's authorized_keys: his own stay byte for byte, and ours go without a trace."""

from __future__ import annotations

import getpass
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import authorized_file
from ansible_collections.twinserve.pair.plugins.modules import authorized_lines
from module_run import run_module

MARK = "twinserve-copy"
OPTIONS = 'restrict,command="rrsync -no-lock -wo /hf"'
OURS, NEXT = (f"{OPTIONS} ssh-ed25519 {key} {MARK}" for key in ("AAA", "BBB"))
USERS = [
    b"ssh-ed25519 MINE me@laptop\n",
    b"ssh-ed25519 MINE me@laptop",
    b"",
    b'\n\n# keys of mine\n\tfrom="10.0.0.0/8",no-pty  ssh-rsa  MINE   two words\n',
    b"# not ours: twinserve-copy\nssh-ed25519 MINE me-twinserve-copy\n",
    b"ssh-ed25519 MINE m\xfc\r\nssh-rsa OTHER\r\n",
    b"ssh-ed25519 MINE m\r",
    b"# one line for sshd\rssh-ed25519 MINE twinserve-copy\n",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home/.ssh/authorized_keys"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "var/fabric/authorized.json"


def put(path: Path, record: Path, *lines: str) -> bool:
    return authorized_file.apply(path, getpass.getuser(), [MARK], lines, record).needed


@pytest.mark.parametrize("content", USERS)
def test_what_a_user_has_stays_and_comes_back_byte_for_byte(path: Path, record: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    path.chmod(0o644)

    assert put(path, record, OURS)
    assert path.read_bytes().startswith(content)
    assert path.read_bytes().split(b"\n")[-2:] == [OURS.encode(), b""], "a line of its own"
    assert not put(path, record, OURS)
    assert put(path, record, OURS, NEXT) and put(path, record, NEXT)
    assert authorized_file.our_lines(path.read_bytes(), MARK) == [NEXT]
    assert put(path, record)

    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o644
    assert not record.parent.exists()
    assert not put(path, record)


def test_a_file_and_a_folder_of_ours_go(path: Path, record: Path) -> None:
    path.parent.parent.mkdir()
    assert put(path, record, OURS)
    assert [one.stat().st_mode & 0o777 for one in (path.parent, path, record)] == [0o700, 0o600, 0o600]
    assert put(path, record)
    assert not path.parent.exists() and not record.parent.exists()


def test_what_the_user_did_meanwhile_is_kept(path: Path, record: Path) -> None:
    path.parent.mkdir(parents=True)
    put(path, record, OURS)
    path.write_bytes(path.read_bytes() + b"ssh-ed25519 LATER me@phone")
    put(path, record)
    assert path.read_bytes() == b"ssh-ed25519 LATER me@phone"

    path.unlink()
    path.write_bytes(b"ssh-ed25519 A a")
    put(path, record, OURS)
    path.write_bytes(path.read_bytes().replace(b" A a", b" B b"))
    put(path, record)
    assert path.read_bytes() == b"ssh-ed25519 B b\n"


def test_others_in_the_folder_keep_it(path: Path, record: Path) -> None:
    path.parent.parent.mkdir()
    put(path, record, OURS)
    (path.parent / "config").touch()
    put(path, record)
    assert [one.name for one in path.parent.iterdir()] == ["config"]


def test_a_folder_of_ours_is_remembered_although_the_user_emptied_the_file(path: Path, record: Path) -> None:
    path.parent.parent.mkdir()
    put(path, record, OURS)
    path.unlink()
    put(path, record, OURS)
    put(path, record)
    assert not path.parent.exists()


def test_two_files_share_a_record(path: Path, record: Path) -> None:
    other = path.with_name("other")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"a b")
    put(path, record, OURS)
    put(other, record, OURS)
    put(other, record)
    assert list(json.loads(record.read_text())) == [str(path)]
    put(path, record)
    assert path.read_bytes() == b"a b" and not record.exists()


def test_lines_of_two_marks_share_a_file_and_go_without_a_trace(path: Path, record: Path) -> None:
    path.parent.parent.mkdir()
    marks = [MARK, "twinserve-image"]
    image = 'restrict,command="docker load" ssh-ed25519 CCC twinserve-image'
    for lines in ([OURS], [OURS, image], []):
        authorized_file.apply(path, getpass.getuser(), marks, lines, record)
        assert authorized_file.our_lines(path.read_bytes() if path.exists() else b"", *marks) == lines
    assert not path.parent.exists() and not record.parent.exists()


def test_a_link_stays_a_link(path: Path, record: Path, tmp_path: Path) -> None:
    path.parent.mkdir(parents=True)
    target = tmp_path / "dotfiles"
    target.write_bytes(b"ssh-ed25519 MINE me\n")
    path.symlink_to(target)
    put(path, record, OURS)
    assert path.is_symlink() and OURS in target.read_text()
    put(path, record)
    assert path.is_symlink() and target.read_bytes() == b"ssh-ed25519 MINE me\n"


def test_lines_without_a_record_are_taken_all_the_same(path: Path, record: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(f"ssh-ed25519 MINE me\n{OURS}\n")
    put(path, record)
    assert path.read_text() == "ssh-ed25519 MINE me\n"


def test_the_module_predicts_and_shows_only_our_lines(
    path: Path, record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(USERS[0])
    given: dict[str, Any] = {
        "path": str(path), "owner": getpass.getuser(), "marks": [MARK], "record": str(record), "lines": [OURS]
    }  # fmt: skip
    foreseen = run_module(authorized_lines, capsys, check=True, **given)
    assert (foreseen["changed"], path.read_bytes(), record.exists()) == (True, USERS[0], False)
    assert foreseen["diff"] == run_module(authorized_lines, capsys, **given)["diff"]
    assert foreseen["diff"]["after"] == f"{OURS}\n" and foreseen["diff"]["before"] == ""
    assert not run_module(authorized_lines, capsys, **given)["changed"]


def test_an_owner_that_does_not_exist(path: Path, record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given: dict[str, Any] = {
        "path": str(path),
        "owner": "nobody-of-that-name",
        "marks": [MARK],
        "record": str(record),
    }
    answer = run_module(authorized_lines, capsys, lines=[OURS], **given)
    assert answer["failed"] and answer["msg"] == f"{path}: there is no user nobody-of-that-name"
