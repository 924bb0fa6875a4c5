"""The store between the ranks: rank 0 listens, rank 1 connects, one connection lives as long as both do."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from typing import Any

from . import __version__

RETRY_SECONDS = 0.2


class Channel:
    """JSON messages over one connection; RuntimeError once the other end is gone."""

    def __init__(self, connection: socket.socket, peer: int) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(None)
        self._connection = connection
        self._lines = connection.makefile("r", encoding="utf-8")
        self.peer = peer

    def send(self, message: Any) -> None:
        """Send one message."""
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise RuntimeError(f"TCP store: connection to rank {self.peer} lost: {error.strerror}") from None

    def receive(self) -> Any:
        """Wait without limit for one message."""
        try:
            line = self._lines.readline()
        except OSError as error:
            raise RuntimeError(f"TCP store: connection to rank {self.peer} lost: {error.strerror}") from None
        if not line:
            raise RuntimeError(f"TCP store: connection to rank {self.peer} lost: it closed")
        return json.loads(line)

    def exchange(self, message: Any) -> Any:
        """Send mine, return theirs: every rank passes the same points in the same order."""
        self.send(message)
        return self.receive()


class Store:
    """Rank 0's end. It listens on every interface; whoever comes after the first rank 1 is never answered."""

    def __init__(self, port: int) -> None:
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind(("0.0.0.0", port))
        except OSError as error:
            raise RuntimeError(f"TCP store: cannot listen on port {port}: {error.strerror}") from None
        self._listener.listen(16)
        self._strays: list[socket.socket] = []

    def wait_for_peer(self, seconds: float) -> Channel:
        """The channel to rank 1; RuntimeError after `seconds` without one."""
        deadline = time.monotonic() + seconds
        while True:
            self._listener.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                raise RuntimeError(f"TCP store: timed out after {seconds:g}s waiting for rank 1") from None
            if _greeted(connection):
                threading.Thread(target=self._hold_late, daemon=True).start()
                return Channel(connection, peer=1)
            self._strays.append(connection)

    def _hold_late(self) -> None:
        """A restarted rank 1 finds the store but never its group: it cannot join a second time."""
        self._listener.settimeout(None)
        while True:
            self._strays.append(self._listener.accept()[0])


def _greeted(connection: socket.socket) -> bool:
    """Is this rank 1? Anything else that connects (a port scan, rank 0's own probe) is not."""
    connection.settimeout(2.0)
    wanted = _greeting(1)
    try:
        if connection.recv(len(wanted), socket.MSG_WAITALL) != wanted:
            return False
        connection.sendall(_greeting(0))
    except OSError:
        return False
    return True


def _greeting(rank: int) -> bytes:
    return f"tensorfold {__version__} rank {rank}\n".encode()


def join(master: str, port: int, seconds: float) -> Channel:
    """Rank 1's end: try until rank 0 answers; RuntimeError after `seconds`."""
    deadline = time.monotonic() + seconds
    wanted = _greeting(0)
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise RuntimeError(
                f"TCP store: timed out after {seconds:g}s waiting for rank 0 at {master}:{port}"
            )
        with contextlib.suppress(OSError):  # not there yet
            connection = socket.create_connection((master, port), timeout=min(left, 10.0))
            connection.settimeout(left)
            connection.sendall(_greeting(1))
            if connection.recv(len(wanted), socket.MSG_WAITALL) == wanted:
                return Channel(connection, peer=0)
            connection.close()
        time.sleep(RETRY_SECONDS)


def reach_own_store(master: str, port: int, seconds: float) -> None:
    """Rank 0 is a client of its own store: --master must be an address of this machine that answers."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((master, port), timeout=10.0).close()
            return
        except OSError as error:
            if time.monotonic() >= deadline:
                raise RuntimeError(f"TCP store: {master}:{port} does not answer: {error}") from None
        time.sleep(RETRY_SECONDS)
