"""What the gateway counts of its connections and requests, on a socket that only root and itself reach."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SOCKET = Path("/run/twinserve-gateway/status.sock")
_PATH = "/status"
_TIMEOUT = 5.0
_COUNTS = re.compile(
    r"Active connections: (?P<active>\d+)\s+"
    r"server accepts handled requests\s+(?P<accepted>\d+) (?P<handled>\d+) (?P<requests>\d+)\s+"
    r"Reading: (?P<reading>\d+) Writing: (?P<writing>\d+) Waiting: (?P<waiting>\d+)"
)
# It is not there, nobody listens, or whoever does says nothing: all else is a fault of who asks.
_SILENT = (FileNotFoundError, ConnectionError, TimeoutError, BlockingIOError, http.client.HTTPException)


@dataclass(frozen=True)
class Traffic:
    """Requests and dropped connections since the gateway's start, and what its connections do now."""

    requests: int
    dropped: int
    connections: Mapping[str, int]


def read(path: Path = SOCKET) -> Traffic | None:
    """Ask; None when it does not answer. Raises OSError or ValueError."""
    connection = _Connection(path)
    try:
        connection.request("GET", _PATH)
        answer = connection.getresponse()
        return parse(answer.read().decode()) if answer.status == 200 else None
    except _SILENT:
        return None
    finally:
        connection.close()


def parse(text: str) -> Traffic:
    """What nginx' stub_status says, without the connection that asks: that one is being written to."""
    found = _COUNTS.search(text)
    if not found:
        raise ValueError(f"the gateway's status is unknown: {text!r}")
    count = {name: int(value) for name, value in found.groupdict().items()}
    return Traffic(
        requests=count["requests"],
        dropped=count["accepted"] - count["handled"],
        connections={
            "active": count["active"] - 1,
            "reading": count["reading"],
            "writing": count["writing"] - 1,
            "waiting": count["waiting"],
        },
    )


class _Connection(http.client.HTTPConnection):
    """To a socket in the file system."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_TIMEOUT)
        self.path = path

    def connect(self) -> None:
        """Connect to the file."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))
