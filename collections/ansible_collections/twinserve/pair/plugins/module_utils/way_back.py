"""A timer that undoes a change on the node by itself, for changes that can cut everybody off from it.

Armed before the change, disarmed once the node proved to be reachable. It is systemd's, so that it goes off
also when the session that made the change is gone.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from .shell import run


def arm(name: str, seconds: int, commands: Sequence[Sequence[str]]) -> None:
    """Run `commands` one after the other in `seconds`, whatever happens until then."""
    script = "; ".join(shlex.join(command) for command in commands)
    timer = ["--quiet", "--collect", f"--unit={_unit(name)}", f"--on-active={seconds}"]
    run(["systemd-run", *timer, "--timer-property=AccuracySec=1s", "/bin/sh", "-c", script])


def disarm(name: str) -> None:
    """Take the timer away. Raises CommandError when that fails: the change will then be undone."""
    run(["systemctl", "stop", f"{_unit(name)}.timer"])


def _unit(name: str) -> str:
    return f"twinserve-way-back-{name}"
