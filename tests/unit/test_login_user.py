"""Whose caches they are, and where: the account behind sudo, its home and its own HF_HOME."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import login_user
from ansible_collections.twinserve.pair.plugins.module_utils.login_user import LoginUser, find_hf, hf_home
from ansible_collections.twinserve.pair.plugins.module_utils.shell import CommandError

ME = pwd.getpwuid(os.getuid())


def user(home: Path) -> LoginUser:
    return LoginUser(ME.pw_name, ME.pw_uid, ME.pw_gid, str(home))


def test_m13_under_sudo_it_is_the_caller() -> None:
    assert login_user.login_user({"SUDO_USER": "daemon"}).name == "daemon"
    assert login_user.login_user({"SUDO_USER": "daemon"}).home == pwd.getpwnam("daemon").pw_dir
    assert login_user.login_user({}).uid == os.getuid()


def test_m13_root_asks_in_the_name_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    bob = LoginUser("bob", 1000, 1000, "/home/bob")
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert login_user.as_user(bob, ["hf"]) == ["runuser", "-u", "bob", "--", "hf"]
    assert login_user.as_user(LoginUser("root", 0, 0, "/root"), ["hf"]) == ["hf"]
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert login_user.as_user(bob, ["hf"]) == ["hf"]


@pytest.mark.parametrize(
    ("profile", "found"),
    [
        ("", "{home}/.cache/huggingface"),
        ("export HF_HOME=/models/hf", "/models/hf"),
        ("export HF_HOME='~/hf'", "{home}/hf"),
        ("export HF_HOME=relative", "{home}/.cache/huggingface"),
        ("export HF_HOME='/with space/hf'", "/with space/hf"),
        ("printf 'Welcome to /srv'; export HF_HOME=/models/hf", "/models/hf"),
        ("echo /not/this", "{home}/.cache/huggingface"),
        ("exit 3", "{home}/.cache/huggingface"),
    ],
)
def test_m13_the_users_own_profile_says_where_his_cache_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, found: str
) -> None:
    monkeypatch.setenv("HF_HOME", "/of/somebody/else")
    (tmp_path / ".bash_profile").write_text(profile + "\n")
    assert hf_home(user(tmp_path), None) == found.format(home=tmp_path)


def test_m13_a_login_shell_that_does_not_answer_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_user, "_PATIENCE", 0.5)
    (tmp_path / ".bash_profile").write_text("exec sleep 5\n")
    with pytest.raises(
        CommandError, match="a login shell of .* takes longer .*: mend the profile, or set hf_cache"
    ):
        hf_home(user(tmp_path), None)
    assert hf_home(user(tmp_path), "/models/hf") == "/models/hf"


@pytest.mark.parametrize(
    ("configured", "found"),
    [("/models/hf", "/models/hf"), ("~/hf", "{home}/hf"), ("~", "{home}"), ("~bob/hf", "~bob/hf")],
)
def test_m13_the_setting_wins_and_its_tilde_is_the_users(tmp_path: Path, configured: str, found: str) -> None:
    (tmp_path / ".bash_profile").write_text("export HF_HOME=/elsewhere\n")
    assert hf_home(user(tmp_path), configured) == found.format(home=tmp_path)


def test_m16_hf_is_found_in_the_users_own_folder(tmp_path: Path) -> None:
    program = tmp_path / ".local/bin/hf"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o644)
    assert find_hf(user(tmp_path)) != str(program)
    program.chmod(0o755)
    assert find_hf(user(tmp_path)) == str(program)


@pytest.mark.parametrize(
    "profile", ["export PATH={bin}:$PATH", "hf() {{ :; }}; export PATH={bin}:$PATH", "exit 3", ""]
)
def test_m16_or_where_his_login_shell_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    """A virtual environment that his profile puts on the path."""
    program = tmp_path / "venv/bin/hf"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / ".bash_profile").write_text(profile.format(bin=program.parent) + "\n")
    # What this machine has of its own is of no concern.
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert find_hf(user(tmp_path)) is None
    assert find_hf(user(tmp_path), ask=True) == (str(program) if "{bin}" in profile else None)
