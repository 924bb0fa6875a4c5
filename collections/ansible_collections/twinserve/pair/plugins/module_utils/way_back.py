"""A timer that undoes a change on the node by itself, for changes that can cut everybody off from it.

Armed before the change, disarmed once the node proved to be reachable. It is systemd's, so that it goes off
also when the session that made the change is gone. Who undoes and who confirms race for one file: only one of
them can rename it. That file counts only as long as systemd has the timer or runs the undo: what was left
behind by somebody who was killed must not keep later changes away.
"""

from __future__ import annotations

import fcntl
import json
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .shell import CommandError, run

FOLDER = Path("/run/twinserve-way-back")
# Seconds that an undo may take: netplan, and NetworkManager's wait for each port.
_UNDO = 60


def folder(name: str) -> Path:
    """Where a change keeps what its undo needs; only root may read it."""
    return FOLDER / name


@contextmanager
def lock(name: str, seconds: float, is_ready: Callable[[], bool] = lambda: True) -> Iterator[bool]:
    """Keep everybody else from changes of that name, from when it `is_ready`; False when that takes too long.

    Whoever waits for a change to be confirmed lets go meanwhile: the confirmation needs the lock too.
    """
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    limit = time.monotonic() + seconds
    with (FOLDER / f"{name}.lock").open("w") as file:
        while not (is_held := _take(file, is_ready)) and time.monotonic() < limit:
            time.sleep(0.2)
        yield is_held


def _take(file: IO[str], is_ready: Callable[[], bool]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    if is_ready():
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


def arm(name: str, seconds: int, commands: Sequence[Sequence[str]], about: dict[str, Any]) -> None:
    """Run `commands` one after the other in `seconds` unless somebody confirms; `about` is for him to read.

    Raises CommandError when the timer cannot be set: then nothing may be changed.
    """
    place = folder(name)
    for old in ("armed", "undoing", "undone"):
        (place / old).unlink(missing_ok=True)
    lines = [shlex.join(command) for command in commands]
    script = ["cd " + shlex.quote(str(place)), "mv armed undoing || exit 0", *lines, "mv undoing undone"]
    (place / "undo").write_text("\n".join(script) + "\n")
    if _is_alive(name):
        # Left by somebody who was killed before he wrote the next line; it has nothing to undo.
        stop_timer(name)
    timer = ["--quiet", "--collect", f"--unit={_unit(name)}", f"--on-active={seconds}"]
    exact = ["--timer-property=AccuracySec=100ms", "--service-type=oneshot"]
    run(["systemd-run", *timer, *exact, "/bin/sh", str(place / "undo")])
    # Last, so that there is never one without a timer: a timer without this file ends at once.
    (place / "armed").write_text(json.dumps(about))


def make_room(name: str) -> Path:
    """An empty, private folder for a new change."""
    place = folder(name)
    shutil.rmtree(place, ignore_errors=True)
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    place.mkdir(mode=0o700)
    return place


def undo_now(name: str) -> None:
    """Do at once, and wait for, what the timer would do. By systemd too: our session may be gone next.

    Raises CommandError when it was not done, be it by us or by the timer itself.
    """
    start, why = ["systemctl", "start", f"{_unit(name)}.service"], "it did not come to its end"
    try:
        run(start, timeout=_UNDO)
    except CommandError as error:
        # So it is, too, when the timer was faster: a unit that has ended is no longer there to start.
        why = str(error)
    if settle(name, _UNDO) != "undone":
        raise CommandError(why)
    stop_timer(name)


def claim(name: str) -> dict[str, Any] | None:
    """Keep the change: no undo can begin any more. What was armed; None when nothing was, or too late.

    The timer still has to be stopped; one that goes off before finds nothing to do.
    """
    place = folder(name)
    if state(name) != "armed":
        return None
    try:
        (place / "armed").rename(place / "kept")
    except FileNotFoundError:
        return None
    about: dict[str, Any] = json.loads((place / "kept").read_text())
    return about


def state(name: str) -> str:
    """`armed`, `undoing`, `undone`, or `none` when no change waits for anything."""
    found = _written(name)
    if found not in ("armed", "undoing") or _is_alive(name):
        return found
    # An undo may have ended between our two looks.
    return "none" if _written(name) == found else _written(name)


def settle(name: str, seconds: float) -> str:
    """Wait until no undo is due or running; the state in the end."""
    limit = time.monotonic() + seconds
    while state(name) in ("armed", "undoing") and time.monotonic() < limit:
        time.sleep(0.2)
    return state(name)


def clear(name: str) -> None:
    """Forget a change that is kept or undone."""
    shutil.rmtree(folder(name), ignore_errors=True)


def _written(name: str) -> str:
    return next((one for one in ("armed", "undoing", "undone") if (folder(name) / one).exists()), "none")


def _is_alive(name: str) -> bool:
    """Whether systemd has the timer, or runs what it starts (a oneshot: `activating` meanwhile)."""
    units = [f"{_unit(name)}.timer", f"{_unit(name)}.service"]
    said = run(["systemctl", "show", "--property=ActiveState", "--value", *units])
    return any(state not in ("inactive", "failed") for state in said.split())


def stop_timer(name: str) -> None:
    """A timer that has gone off is no longer there to stop, and has nothing left to do."""
    try:
        run(["systemctl", "stop", f"{_unit(name)}.timer"])
    except CommandError as error:
        if "not loaded" not in str(error):
            raise


def _unit(name: str) -> str:
    return f"twinserve-way-back-{name}"
