"""What rsync and ssh say: how far they are, what the worker lacks, and what a failure means. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..ssh_client import CURE, not_trusted

# Written over and over in one line; an error may follow in the same.
_BYTES = re.compile(r"\s*(\d+)\s+\d+%\s+\S+\s+[\d:?]+\s*(\([^)]*\)\s*)?")
_ITEM = re.compile(r"<f(?P<new>\+{9})?\S* (?P<name>.+)|(?P<link>cL\S* .+)")
_UNKNOWN_HOST = re.compile(r"No \S+ host key is known for")
_REFUSED = re.compile(r"Permission denied (?=\([a-z])|Host key verification failed")
# Nothing that another rail would mend.
_HOPELESS = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|Permission denied \(13\)"
    r"|rrsync\S* error:|rrsync: not found|command not found|unknown option|not permitted"
)
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
# rsync's codes for an end that broke away: socket, protocol, pipes, signals, timeouts; 255 is ssh's own.
_BROKEN = frozenset({10, 12, 14, 19, 20, 30, 35, 255})
_NOISE = re.compile(
    r"rsync error: |rsync: connection unexpectedly closed|rsync: \[\w+\] write error: Broken pipe"
)

# What a code means that came without a word.
_SILENT = {
    11: "the worker could not write, or the head could not read, and did not say why: look for a full disk"
}


@dataclass(frozen=True)
class Result:
    """How a program ended, and the last lines that it printed."""

    code: int
    tail: tuple[str, ...]


@dataclass(frozen=True)
class Lacking:
    """What the worker lacks: `new` files, those that are there with `other` content, and whether links do."""

    new: frozenset[str]
    other: frozenset[str]
    links: bool

    @property
    def files(self) -> frozenset[str]:
        """All files to be sent."""
        return self.new | self.other


@dataclass(frozen=True)
class Fault:
    """Why a call failed; `hopeless` when no other rail would do better."""

    text: str
    hopeless: bool


def bytes_moved(line: str) -> int | None:
    """The bytes of this call so far, if the line is one of its progress."""
    found = _BYTES.match(line)
    return int(found[1]) if found else None


def beside_progress(line: str) -> str:
    """What else is said in a line; nothing, for most lines of progress."""
    return _BYTES.sub("", line, count=1) if _BYTES.match(line) else line


def lacking(lines: Iterable[str]) -> Lacking:
    """Read the list of a dry run."""
    new: set[str] = set()
    other: set[str] = set()
    links = False
    for line in lines:
        if not (found := _ITEM.fullmatch(line)):
            continue
        if found["link"]:
            links = True
        else:
            (new if found["new"] else other).add(found["name"])
    return Lacking(frozenset(new), frozenset(other), links)


def fault(result: Result, user: str, address: str) -> Fault | None:
    """What a failed call means; None when it did not fail."""
    if result.code == 0:
        return None
    said = "\n".join(result.tail)
    if _UNKNOWN_HOST.search(said):
        text = "head does not know the worker's host key: run the fabric play (it records it)"
        return Fault(text, hopeless=True)
    if refused := _REFUSED.search(said):
        return Fault(f"{not_trusted(user, address)} ({refused[0].strip()}); {CURE}", hopeless=True)
    hopeless = next((line for line in result.tail if _HOPELESS.search(line)), None)
    if hopeless:
        if _FULL.search(hopeless):
            text = f"no space is left on the worker: make room and run it again ({hopeless.strip()})"
            return Fault(text, hopeless=True)
        cure = f"; {CURE}" if "rrsync" in hopeless else ""
        return Fault(f"{hopeless.strip()}{cure}", hopeless=True)
    # A negative code is a signal: somebody ended that one process. A worker's last words can be lost with it;
    # asked once more it says them.
    final = result.code not in _BROKEN and result.code > 0 and bool(said.strip())
    return Fault(reason(result), hopeless=final)


def reason(result: Result) -> str:
    """The line that tells most: rsync's own last one only repeats the code."""
    lines = [line.strip() for line in result.tail if line.strip()]
    telling: Sequence[str] = [line for line in lines if not _NOISE.match(line)] or lines
    return telling[-1] if telling else _SILENT.get(result.code, f"exit {result.code}")
