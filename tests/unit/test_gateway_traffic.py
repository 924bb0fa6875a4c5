"""What the gateway counts, read from its socket; and a gateway that does not answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.gateway import traffic

# As nginx 1.24 writes it. Two of the four clients wait for their next request; a fifth connection asks this.
STATUS = """Active connections: 5 
server accepts handled requests
 1042 1039 8181 
Reading: 1 Writing: 2 Waiting: 2 
"""  # noqa: W291


@contextmanager
def answering(path: Path, answer: str) -> Iterator[None]:
    """Somebody who answers one request on that socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            asker, _ = listener.accept()
            with asker:
                asked = asker.recv(4096)
                known = asked.startswith(b"GET /status HTTP/1.1\r\n")
                asker.sendall(answer.encode() if known else b"")

        server = Thread(target=serve)
        server.start()
        yield
        server.join(10)


def ok(text: str, status: str = "200 OK") -> str:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n\r\n{text}"


def test_the_clients_are_counted_without_who_asks(tmp_path: Path) -> None:
    with answering(tmp_path / "s", ok(STATUS)):
        found = traffic.read(tmp_path / "s")
    connections = {"active": 4, "reading": 1, "writing": 1, "waiting": 2}
    assert found == traffic.Traffic(requests=8181, dropped=3, connections=connections)


@pytest.mark.parametrize(
    "answer", ["", ok("{}", "404 Not Found"), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nAct"]
)
def test_one_that_breaks_off_or_knows_no_status_does_not_answer(tmp_path: Path, answer: str) -> None:
    with answering(tmp_path / "s", answer):
        assert traffic.read(tmp_path / "s") is None


def test_one_that_is_not_there_or_was_killed_does_not_answer(tmp_path: Path) -> None:
    assert traffic.read(tmp_path / "s") is None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(tmp_path / "s"))
    assert traffic.read(tmp_path / "s") is None


def test_another_text_is_a_fault_of_ours_and_not_the_gateways(tmp_path: Path) -> None:
    with answering(tmp_path / "s", ok("Connections: many")), pytest.raises(ValueError, match="unknown"):
        traffic.read(tmp_path / "s")
