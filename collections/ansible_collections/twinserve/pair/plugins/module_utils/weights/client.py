"""The download program as a process group of its own, as the user who owns the cache."""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .. import progress
from ..model_transfer import HUB_AWAY
from ..shell import CommandError, run
from .locks import processes_below

_OURS = ("PYTHONPATH", progress.VARIABLE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
GRACE = 10.0  # seconds between asking and killing


@dataclass
class Client:
    """A program that runs, perhaps through docker: then the process that works is not below ours."""

    argv: Sequence[str]
    user: str | None
    _child: subprocess.Popen[str] = field(init=False)
    _listener: threading.Thread = field(init=False)
    _said: deque[str] = field(init=False, default_factory=lambda: deque(maxlen=25))

    def __post_init__(self) -> None:
        """Start it. What an earlier run left in docker under the same name goes first."""
        self._remove_container()
        # What is ours in the environment is not the client's: neither our package nor our file of numbers.
        env = {name: value for name, value in os.environ.items() if name not in _OURS}
        self._child = subprocess.Popen(
            list(self.argv),
            start_new_session=True,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            **_identity(self.user),
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def reason(self) -> str:
        """The last that it said, without what only concerns its developers."""
        self._listener.join(GRACE)
        told = [line for line in self._said if line and not line.startswith("Hint: ")]
        return told[-1] if told else "no output"

    @property
    def hub_is_away(self) -> bool:
        """Whether it ended for want of an answer, by the last that it said."""
        return re.search(HUB_AWAY, self.reason) is not None

    def _listen(self) -> None:
        """Pass on what it says; a terminal's colours are of no use in a log."""
        for line in self._child.stdout or ():
            plain = _COLOUR.sub("", line).rstrip()
            print(plain, flush=True)
            self._said.append(plain)

    @property
    def code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._child.poll()

    @property
    def processes(self) -> set[int]:
        """All processes that work for it."""
        roots = {self._child.pid}
        if self._container:
            with suppress(CommandError, ValueError):  # it has not begun, or is over
                roots.add(int(run(["docker", "inspect", "--format", "{{.State.Pid}}", self._container])))
        return processes_below(roots - {0})

    def stop(self) -> None:
        """End the whole group, and the container that docker would let run on."""
        if self.code is None:
            self._signal(signal.SIGTERM)
            try:
                self._child.wait(GRACE)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self._child.wait()
        self._signal(signal.SIGKILL)
        self._remove_container()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):  # nobody is left in it
            os.killpg(self._child.pid, number)

    @property
    def _container(self) -> str | None:
        words = list(self.argv)
        return words[words.index("--name") + 1] if words[0] == "docker" and "--name" in words else None

    def _remove_container(self) -> None:
        if not self._container:
            return
        try:
            run(["docker", "rm", "--force", self._container])
        except CommandError as error:
            if "no such container" not in error.said.lower():
                raise


def _identity(user: str | None) -> dict[str, Any]:
    """Arguments that make a process that user's, with his groups and in his home."""
    if user is None or os.getuid() != 0:
        return {}
    entry = pwd.getpwnam(user)
    groups = os.getgrouplist(user, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": groups, "cwd": entry.pw_dir}
