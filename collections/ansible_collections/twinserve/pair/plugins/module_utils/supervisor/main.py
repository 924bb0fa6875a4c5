"""The supervisor's loop: collect answers, step, act, show. Everything that decides is in `step`."""

from __future__ import annotations

import os
import queue
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..agent.paths import VERSION
from . import metrics, statefile, status_page
from .act import Doer, in_thread
from .beat import Beat
from .client import Client
from .config import ConfigError, read_config
from .events import Action, Done, Exit, Observation, Say
from .nodes import make_nodes
from .notify import notify, one_line
from .state import Phase, State, fresh
from .step import step
from .words import status

CONFIG = Path("/etc/twinserve/pair.json")
STATE = Path("/run/twinserve/state.json")
_TICK = 0.25
# EX_CONFIG: the unit is not restarted for it.
_BAD_CONFIG = 78
# While ranks are being stopped, systemd is asked for this much more, again and again.
_MORE_TIME = 60


class Reload(Exception):
    """SIGHUP: make room for a supervisor with the present runtime and configuration. The ranks run on."""


Inbox = queue.SimpleQueue[Done | Exception | None]


@dataclass
class Loop:
    """The state and its surroundings. `submit` starts an action whose answer comes into the inbox."""

    state: State
    inbox: Inbox
    submit: Callable[[Action], None]
    show: Callable[[State, float], None]
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], str] = lambda: datetime.now(UTC).isoformat(timespec="seconds")

    def turn(self, wait: float) -> bool:
        """Wait for news at most `wait` seconds and act on them; returns False when all is over."""
        done, terminate = self._news(wait)
        now = self.clock()
        self.state, actions = step(self.state, Observation(self.wall(), done, terminate), now)
        self.show(self.state, now)
        for action in actions:
            match action:
                case Say(text=text):
                    self.say(text)
                case Exit():
                    return False
                case _:
                    self.submit(action)
        return True

    def _news(self, wait: float) -> tuple[tuple[Done, ...], bool]:
        """Return the answers that are there, and whether we were asked to stop (an empty entry)."""
        found: list[Done] = []
        terminate = False
        try:
            entry = self.inbox.get(timeout=wait) if wait > 0 else self.inbox.get_nowait()
            while True:
                if isinstance(entry, Exception):
                    raise entry
                if entry is None:
                    terminate = True
                else:
                    found.append(entry)
                entry = self.inbox.get_nowait()
        except queue.Empty:
            return tuple(found), terminate


class Shower:
    """Shows the state where people and playbooks look: the state file and `systemctl status`."""

    def __init__(
        self, path: Path, about: Mapping[str, Any] | None = None, tell: Callable[[str], Any] = notify
    ) -> None:
        """`about`: what the file says of the supervisor itself, which stays as it is."""
        self._path, self._about, self._tell = path, dict(about or {}), tell
        self._document: dict[str, Any] = {}
        self._status = ""

    def __call__(self, state: State, now: float) -> None:
        """Write what changed since the last call."""
        document = {**statefile.document(state, now), **self._about}
        if document != self._document:
            statefile.write(self._path, document)
            self._document = document
        line = one_line(status(state, now))
        if line != self._status:
            self._tell(f"STATUS={line}")
            self._status = line
        if state.phase in (Phase.HALT, Phase.EMPTY) and state.quitting:
            self._tell(f"EXTEND_TIMEOUT_USEC={_MORE_TIME * 1_000_000}")


def say(text: str) -> None:
    """Write to the journal."""
    print(text, flush=True)


def main() -> int:
    """Run until SIGTERM has stopped the pair, or SIGHUP asks for a successor.

    Without a usable configuration: say so and fail.
    """
    try:
        config = read_config(CONFIG)
    except ConfigError as error:
        print(error, file=sys.stderr)
        notify(f"STATUS={one_line(str(error))}")
        return _BAD_CONFIG
    inbox: Inbox = queue.SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: inbox.put(None))
    signal.signal(signal.SIGHUP, lambda *_: inbox.put(Reload()))
    client = Client(config.host, config.port, config.health_metrics)
    doer = Doer(config, make_nodes(config.members), client)
    # So that playbooks see when a supervisor has not taken up what they wrote.
    about = {"pid": os.getpid(), "runtime": VERSION, "config_sha256": config.sha256}
    shower, beat, versions = Shower(STATE, about), Beat(), status_page.read_versions()

    def show(state: State, now: float) -> None:
        shower(state, now)
        if beat.due(state, now):
            metrics.write(state, VERSION, now)
            if config.gateway:
                status_page.write(state, versions, now)

    loop = Loop(
        state=fresh(config, time.monotonic(), ""),
        inbox=inbox,
        submit=lambda action: in_thread(doer, action, inbox.put),
        show=show,
        say=say,
    )
    loop.state = replace(statefile.restore(loop.state, STATE), clock=loop.wall(), since=loop.wall())
    # Before systemd hears that we are up: who waits for the start must not read an earlier state.
    show(loop.state, time.monotonic())
    notify("READY=1")
    try:
        while loop.turn(_TICK):
            pass
    except Reload:
        say("reloading: the ranks run on, the next supervisor adopts them")
    return 0
