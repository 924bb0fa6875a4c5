"""Which run of a playbook changes this pair: one at a time, and none what another has changed since its look.

The head of a pair has the lock. A run lets go of it at its end. One that was killed leaves no lock behind:
another run of the same controller sees there whether the process lives, and so does the head when it is the
controller itself; for one of another controller the ssh session counts that the run came by, which Ansible
keeps for two minutes after its last use.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

PATH = Path("/run/twinserve.lock")
_SSH = frozenset({"sshd", "sshd-session"})


@dataclass(frozen=True)
class Process:
    """A process that no later one can be taken for: `started` in clock ticks since the boot."""

    pid: int
    started: int


@dataclass(frozen=True)
class Holder:
    """A run: by whom, of what, at work since when, on which controller, and how it came to the node."""

    who: str
    what: str
    since: str
    controller: str
    run: Process
    session: Process | None = None
    ended: bool = False

    @property
    def id(self) -> str:
        """The run's own name."""
        return f"{self.controller}/{self.run.pid}/{self.run.started}"

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.what} by {self.who} (pid {self.run.pid}, since {self.since})"

    def at(self, pid: int, root: Path = Path("/")) -> Holder:
        """The same, with what stands for it on this machine, where it came to be process `pid`."""
        here = find_process(self.run.pid, root) == self.run
        return replace(self, session=self.run if here else ssh_session(pid, root))


class HeldError(RuntimeError):
    """Another run changes the node, or has changed it; `holder` is that run."""

    def __init__(self, text: str, holder: Holder) -> None:
        super().__init__(text)
        self.holder = holder


def read(path: Path = PATH) -> Holder | None:
    """The run that holds the node, or held it last since the boot."""
    try:
        return parse(json.loads(path.read_text(encoding="utf-8") or "null"))
    except FileNotFoundError:
        return None


def parse(given: Mapping[str, object] | None) -> Holder | None:
    """From plain data. Raises ValueError."""
    if not given:
        return None
    parts = {name: given[name] for name in ("who", "what", "since", "controller")}
    session = given.get("session")
    return Holder(
        **{name: str(part) for name, part in parts.items()},
        run=_process(given["run"]),
        session=_process(session) if session else None,
        ended=bool(given.get("ended")),
    )


def take(
    own: Holder, seen: str | None, gone: str | None = None, path: Path = PATH, root: Path = Path("/")
) -> None:
    """Hold the pair for a run. Raises HeldError.

    `seen` is the id of the run that had held it last when this one looked, empty for none; None does not ask.
    `gone` is the id of a run whose controller knows that it has ended.
    """
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        last = parse(json.loads(file.read() or "null"))
        other = last if last and last.id != own.id else None
        if other and other.id != gone and lives(other, own, root):
            raise HeldError(f"{other.words} is changing this pair: run this again when that has ended", other)
        if other and seen is not None and other.id != seen:
            raise HeldError(f"{other.words} has changed this pair meanwhile: run this again", other)
        file.truncate(0)
        file.write(json.dumps(asdict(own)))


def let_go(own: Holder, path: Path = PATH) -> None:
    """Tell that a run has done what it had to; what it may go on to look at is everybody's."""
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        last = parse(json.loads(file.read() or "null"))
        if last and last.id == own.id:
            file.truncate(0)
            file.write(json.dumps(asdict(replace(last, ended=True))))


def lives(other: Holder, own: Holder, root: Path = Path("/")) -> bool:
    """Whether another run may still be under way, as far as the node can tell."""
    if other.ended:
        return False
    if other.controller == own.controller:
        return True  # the controller itself looks
    return other.session is not None and find_process(other.session.pid, root) == other.session


def find_process(pid: int, root: Path = Path("/")) -> Process | None:
    """The process that has this id now."""
    fields = _stat(pid, root)
    return Process(pid, int(fields[19])) if fields and fields[0] not in ("Z", "X") else None


def ssh_session(pid: int, root: Path = Path("/")) -> Process | None:
    """The ssh session that a process belongs to."""
    while pid > 1 and (fields := _stat(pid, root)):
        if (root / f"proc/{pid}/comm").read_text().strip() in _SSH:
            return find_process(pid, root)
        pid = int(fields[1])
    return None


def _stat(pid: int, root: Path) -> list[str] | None:
    """What the kernel says of a process, from its state on (the third field of proc(5), pid/stat)."""
    try:
        text = (root / f"proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


def _process(given: object) -> Process:
    if not isinstance(given, Mapping):
        raise ValueError(f"no process: {given!r}")
    return Process(int(given["pid"]), int(given["started"]))
