"""Known failures in a node's logs, each with its cure: the engine's own, and those of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .lost_device import ERROR
from .redact import redact

_LONGEST = 300
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+-]+")


@dataclass(frozen=True)
class Sign:
    """What a failure looks like in a log, and what helps."""

    pattern: re.Pattern[str]
    cure: str


@dataclass(frozen=True)
class Found:
    """A known failure that is in the logs: its last line, in which file, when, and how often in all."""

    line: str
    cure: str
    where: str
    at: str | None
    count: int


# What Docker, the driver and the kernel say, whatever the engine.
_COMMON = (
    (
        r"no space left on device",
        "make room on that node (df -h, docker system df), then systemctl restart twinserve on the head",
    ),
    (r"NVRM: Xid .*: 79,|GPU has fallen off the bus", "the GPU is gone until the node is power-cycled"),
    (r"NVRM: Xid ", "the GPU reported an error: nvidia-smi -q says more; reboot the node"),
    (r"NVRM: API mismatch|Driver/library version mismatch", "driver and libraries differ: reboot the node"),
    (
        r"Out of memory: Killed process|oom-kill:",
        "stop other work, or set a smaller kv_pool_gib or a larger memory_reserve_gib",
    ),
    (ERROR.pattern, "power-cycle the node: a reboot does not bring the card back"),
    (r"I/O error, dev |EXT4-fs error|Buffer I/O error", "the disk fails: smartctl -a says more; replace it"),
)


def signs(engine: Iterable[Mapping[str, Any]]) -> list[Sign]:
    """The engine's own (`pattern` and `cure`) first, then those of everything below it.

    Raises ValueError for a pattern that is none.
    """
    try:
        own = [Sign(re.compile(one["pattern"], re.MULTILINE), one["cure"]) for one in engine]
    except re.error as error:
        raise ValueError(f"{error.pattern!r} is no pattern: {error}") from error
    return [*own, *(Sign(re.compile(pattern, re.IGNORECASE), cure) for pattern, cure in _COMMON)]


def scan(
    logs: Iterable[tuple[str, str]], wanted: Iterable[Sign], secrets: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Those signs that are in the logs (name and text, oldest first), each once, without `secrets`.

    A line is told for the first sign that it bears alone, and counted once: a kept log is in the journal too.
    """
    known, hidden = list(wanted), list(secrets)
    found: dict[int, Found] = {}
    told: set[str] = set()
    for name, text in logs:
        for number, sign in enumerate(known):
            for hit in sign.pattern.finditer(text):
                line = _line(text, hit.start())
                if line not in told:
                    told.add(line)
                    count = found[number].count + 1 if number in found else 1
                    time = _TIME.match(line)
                    at = time.group(0) if time else None
                    found[number] = Found(redact(line, hidden)[:_LONGEST], sign.cure, name, at, count)
    return [asdict(found[number]) for number in sorted(found)]


def _line(text: str, inside: int) -> str:
    end = text.find("\n", inside)
    return text[text.rfind("\n", 0, inside) + 1 : end if end >= 0 else None].strip()
