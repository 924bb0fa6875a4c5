"""The agents of the ranks: the head's by a program, a worker's by ssh and its forced command."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ..shell import last_line
from ..ssh_client import FAILED, KEYS, KNOWN_HOSTS, refusal, ssh_options
from .config import Member

AGENT = "/usr/local/sbin/twinserve-rank"
KEY = Path(KEYS, "control")
SOCKETS = Path("/run/twinserve")
_REFUSED = 126


class NodeError(RuntimeError):
    """An agent could not be asked, or could not do it; the text follows the node's name in a sentence."""


class Node(Protocol):
    """An agent."""

    def call(self, words: Sequence[str], stdin: str, timeout: float) -> str:
        """Return what the agent printed; raises NodeError."""


class LocalNode:
    """The head's own agent."""

    def __init__(self, argv: Sequence[str] = (AGENT,)) -> None:
        self._argv = list(argv)

    def call(self, words: Sequence[str], stdin: str, timeout: float) -> str:
        """Run the agent as a program."""
        code, out, err = _run([*self._argv, *words], stdin, timeout)
        return _answer(words, code, out, err)


class SshNode:
    """A worker's agent. One connection is kept; its host key is known and checked."""

    def __init__(
        self, member: Member, key: Path = KEY, known: Path = Path(KNOWN_HOSTS), sockets: Path = SOCKETS
    ) -> None:
        manners = {
            "ConnectTimeout": "5",
            "ServerAliveInterval": "3",
            "ServerAliveCountMax": "3",
            "ControlMaster": "auto",
            "ControlPersist": "60",
            "ControlPath": f"{sockets}/ssh-%C",
            "LogLevel": "ERROR",
        }
        words = [word for name, value in manners.items() for word in ("-o", f"{name}={value}")]
        self._ssh = ["ssh", *ssh_options(str(key), str(known)), *words]
        self._user, self._address = str(member.user), str(member.address)
        self._target = f"{member.user}@{member.address}"

    def argv(self, words: Sequence[str]) -> list[str]:
        """Return the whole command."""
        return [*self._ssh, self._target, " ".join(words)]

    def call(self, words: Sequence[str], stdin: str, timeout: float) -> str:
        """Run one verb on the worker."""
        try:
            code, out, err = _run(self.argv(words), stdin, timeout)
        except NodeError:
            # The kept connection may be to a machine that is no longer there.
            subprocess.run(
                [*self._ssh, "-O", "exit", self._target], capture_output=True, timeout=10, check=False
            )
            raise
        if code == FAILED:
            refused = refusal(err, self._user, self._address)
            if refused:
                raise NodeError(f"is not reached: {refused}")
            raise NodeError(f"unreachable by ssh (exit 255): {last_line(err)}")
        if code == _REFUSED:
            raise NodeError(f"refuses {words[0]!r} for the control key: run the serve playbook")
        return _answer(words, code, out, err)


def make_nodes(members: Sequence[Member]) -> list[Node]:
    """Return the agents in rank order."""
    return [SshNode(member) if member.address else LocalNode() for member in members]


def _run(argv: Sequence[str], stdin: str, timeout: float) -> tuple[int, str, str]:
    # A file, not a pipe: the kept ssh connection may hold its end of stderr open after the command is done.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            done = subprocess.run(
                list(argv), input=stdin, stdout=subprocess.PIPE, stderr=errors, text=True,
                errors="replace", timeout=timeout, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise NodeError(f"did not answer within {timeout:.0f} s") from error
        except OSError as error:
            raise NodeError(f"cannot be asked: {error}") from error
        errors.seek(0)
        return done.returncode, done.stdout, errors.read()


def _answer(words: Sequence[str], code: int, out: str, err: str) -> str:
    if code == 0:
        return out
    try:
        text = str(json.loads(out)["error"])
    except (ValueError, KeyError, TypeError):
        text = f"{words[0]} failed: {last_line(err or out)} (exit {code})"
    raise NodeError(text)
