"""The login user of a node: who owns the caches, and where his Hugging Face files are."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .shell import CommandError, CommandTimeout, run

_MARK = "twinserve-answer="
_PATIENCE = 10.0  # seconds for a login shell


@dataclass(frozen=True)
class LoginUser:
    """The account that ssh reached, before sudo made it root."""

    name: str
    uid: int
    gid: int
    home: str


def login_user(environ: Mapping[str, str] = os.environ) -> LoginUser:
    """Whoever called sudo, else whoever runs this: under `become` sudo itself tells the name."""
    name = environ.get("SUDO_USER")
    entry = pwd.getpwnam(name) if name else pwd.getpwuid(os.getuid())
    return LoginUser(entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_dir)


def as_user(user: LoginUser, argv: list[str]) -> list[str]:
    """`argv` run as that user with his own login environment, when we are root and he is not."""
    if os.getuid() != 0 or user.uid == 0:
        return argv
    return ["runuser", "-u", user.name, "--", *argv]


def hf_home(user: LoginUser, configured: str | None) -> str:
    """The cache root that holds `hub/`: the setting, else the user's HF_HOME, else `~/.cache/huggingface`.

    His login shell is asked, since HF_HOME is usually exported in a profile that sudo does not read. Raises
    `CommandError` when it does not answer in time.
    """
    if configured:
        return expand(configured, user)
    script = f'printf "\\n{_MARK}%s" "${{HF_HOME:-}}"'
    try:
        # A profile may print a greeting: only what follows our mark is the answer.
        said = run(as_user(user, ["bash", "-lc", script]), timeout=_PATIENCE, env=_login_env(user))
    except CommandTimeout as error:
        # A wrong guess would download the whole model to a second place.
        raise CommandError(
            f"a login shell of {user.name} takes longer than {_PATIENCE:.0f} s to say where HF_HOME is: "
            "mend the profile, or set hf_cache"
        ) from error
    except CommandError:
        said = ""  # a broken profile must not stop the run; the default is what `hf` itself would use
    answer = expand(said.rpartition(_MARK)[2].strip() if _MARK in said else "", user)
    return answer if answer.startswith("/") else f"{user.home}/.cache/huggingface"


def expand(path: str, user: LoginUser) -> str:
    """`~` is the login user's home, although we run as root."""
    return f"{user.home}{path[1:]}" if path == "~" or path.startswith("~/") else path


def _login_env(user: LoginUser) -> dict[str, str]:
    return {
        "HOME": user.home,
        "USER": user.name,
        "LOGNAME": user.name,
        "PATH": os.defpath + ":/usr/sbin:/sbin",
    }


def find_hf(user: LoginUser, ask: bool = False) -> str | None:
    """The user's `hf` program: ssh sessions that are no login shells do not have ~/.local/bin in PATH.

    With `ask` his login shell is asked, too: it may know it in an environment of its own.
    """
    for folder in (f"{user.home}/.local/bin", "/usr/local/bin", "/usr/bin"):
        candidate = Path(folder, "hf")
        if os.access(candidate, os.X_OK):
            return str(candidate)
    return _known_to_his_shell(user) if ask else None


def _known_to_his_shell(user: LoginUser) -> str | None:
    script = f'printf "\\n{_MARK}%s" "$(type -P hf)"'
    try:
        said = run(as_user(user, ["bash", "-lc", script]), timeout=_PATIENCE, env=_login_env(user))
    except CommandError:
        return None  # the engine's image has one, too
    path = said.rpartition(_MARK)[2].strip() if _MARK in said else ""
    return path if path.startswith("/") else None
