"""TCP ports on which something listens, and whether it is in the way of a rank."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .shell import run

_USER = re.compile(r'\(\("(?P<process>[^"]*)",pid=(?P<pid>\d+)')
_EVERYWHERE = frozenset({"", "*", "::"})


@dataclass(frozen=True)
class Listener:
    """A listening socket. `address` has no brackets and no zone; `process` is empty when unknown."""

    address: str
    port: int
    process: str = ""
    pid: int | None = None


def parse_listeners(text: str) -> list[Listener]:
    """Parse what `ss -Hltnp` prints."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 5 or words[0] != "LISTEN":
            continue
        address, _, port = words[3].rpartition(":")
        user = _USER.search(line)
        process, pid = (user["process"], int(user["pid"])) if user else ("", None)
        plain = address.strip("[]").partition("%")[0].removeprefix("::ffff:")
        found.append(Listener(plain, int(port), process, pid))
    return found


def read_listeners() -> list[Listener]:
    """Ask the kernel (CommandError: `ss` is missing or failed). Names of processes need root."""
    return parse_listeners(run(["ss", "-Hltnp"]))


def taken(ports: Iterable[Mapping[str, Any]], listeners: Sequence[Listener]) -> list[str]:
    """Say which of a rank's ports ({setting, host, port}) are taken, by whom, and what to do."""
    found = []
    for wanted in ports:
        other = next((one for one in listeners if _in_the_way(one, wanted["host"], wanted["port"])), None)
        if other:
            who = f"{other.process} (pid {other.pid})" if other.process else "another program"
            name = wanted["setting"]
            found.append(f"port {other.port} is taken by {who}: stop it, or set another {name}")
    return found


def _in_the_way(other: Listener, host: str, port: int) -> bool:
    if other.port != port:
        return False
    if _EVERYWHERE & {host, other.address} or host == other.address:
        return True
    return "0.0.0.0" in (host, other.address) and ":" not in host + other.address
