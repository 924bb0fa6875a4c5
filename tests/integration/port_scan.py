"""A scan of every TCP port by opening a connection to each; a program, for the network that it is started in.

Prints for each address {open: ports, silent: [first, last] ranges}: what is silent neither takes a connection
nor refuses it.
"""

from __future__ import annotations

import errno
import json
import resource
import select
import socket
import sys
from collections.abc import Iterable
from typing import Any

_BATCH = 4096
# Seconds without any answer after which those that are left count as silent.
_QUIET = 1.5


def scan(address: str) -> dict[str, Any]:
    """What each port of `address` answers."""
    is_open: list[int] = []
    silent: list[int] = []
    for first in range(1, 65536, _BATCH):
        took, quiet = _knock(address, range(first, min(first + _BATCH, 65536)))
        is_open += took
        silent += quiet
    return {"open": sorted(is_open), "silent": ranges(silent)}


def _knock(address: str, ports: Iterable[int]) -> tuple[list[int], list[int]]:
    waiting: dict[int, tuple[int, socket.socket]] = {}
    poll, took = select.epoll(), list[int]()
    for port in ports:
        one = socket.socket()
        one.setblocking(False)
        error = one.connect_ex((address, port))
        if error == errno.EINPROGRESS:
            waiting[one.fileno()] = (port, one)
            poll.register(one, select.EPOLLOUT)
        else:
            took += [port] * (error == 0)
            one.close()
    while waiting and (events := poll.poll(_QUIET)):
        for number, _ in events:
            port, one = waiting.pop(number)
            took += [port] * (one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0)
            one.close()
    left = [port for port, _ in waiting.values()]
    for _, one in waiting.values():
        one.close()
    poll.close()
    return took, left


def ranges(ports: Iterable[int]) -> list[list[int]]:
    """Neighbours together."""
    found: list[list[int]] = []
    for port in sorted(ports):
        if found and found[-1][1] == port - 1:
            found[-1][1] = port
        else:
            found.append([port, port])
    return found


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * _BATCH, 2 * _BATCH))
    json.dump({address: scan(address) for address in sys.argv[1:]}, sys.stdout)
