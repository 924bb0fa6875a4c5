"""The short verification of a serving pair, against a real server on loopback."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.api_check import (
    ApiBusy,
    ApiError,
    bound,
    call,
    check,
)
from ansible_collections.twinserve.pair.plugins.module_utils.listeners import Listener
from ansible_collections.twinserve.pair.plugins.modules import api_check
from module_run import run_module

MODEL = "GLM-5.3-Flash-EXL3"


class Server(ThreadingHTTPServer):
    """Answers by path: (status, text). What was posted is in `posted`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posted: list[dict[str, Any]] = []
        self.answers: dict[str, tuple[int, str]] = {
            "/v1/models": (200, json.dumps({"data": [{"id": MODEL}]})),
            "/v1/chat/completions": (200, json.dumps(chat("Paris."))),
            "/metrics": (200, "tensorfold_requests_total 1\n"),
            "/health": (200, '{"ok": true, "pool_tokens": 2684928}'),
        }

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        status, text = server.answers[self.path]
        if not status:
            self.wfile.write(b"no HTTP at all\r\n\r\n")
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        server.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def chat(content: str | None) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": content}}]}


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def ask(server: Server) -> dict[str, Any]:
    return check(server.base, MODEL, "Capital?", {"temperature": 0}, 32)


def test_a_serving_pair_gives_its_answer_and_what_it_says_of_itself(server: Server) -> None:
    found = ask(server)
    assert (found["models"], found["answer"], found["health"]["pool_tokens"]) == ([MODEL], "Paris.", 2684928)
    assert 0 <= found["seconds"] < 60
    assert server.posted == [
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": "Capital?"}],
            "max_tokens": 32,
            "temperature": 0,
        }
    ]


def test_an_engine_whose_health_says_nothing_is_well(server: Server) -> None:
    server.answers["/health"] = (200, "")
    assert ask(server)["health"] == {}


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        ("/v1/models", (200, '{"data": [{"id": "other"}]}'), f"/v1/models lists other instead of {MODEL}"),
        ("/v1/models", (200, '{"data": []}'), f"/v1/models lists nothing instead of {MODEL}"),
        ("/v1/models", (401, '{"error": "no key"}'), '/v1/models answered 401: {"error": "no key"}'),
        (
            "/v1/chat/completions",
            (500, "decoder broken"),
            "/v1/chat/completions answered 500: decoder broken",
        ),
        ("/v1/chat/completions", (200, json.dumps(chat(" \n"))), "gave an empty answer to 'Capital?'"),
        ("/v1/chat/completions", (200, json.dumps(chat(None))), "gave an empty answer"),
        ("/v1/chat/completions", (0, ""), "/v1/chat/completions did not answer"),
        ("/v1/chat/completions", (200, "{}"), "gave an empty answer"),
        ("/v1/models", (200, "no JSON"), "/v1/models answered something else than a JSON object: 'no JSON'"),
        ("/health", (200, "[]"), "/health answered something else than a JSON object: '[]'"),
        ("/metrics", (200, "nothing here"), "/metrics shows no counters"),
        ("/health", (503, ""), "/health answered 503"),
    ],
)
def test_what_is_wrong_is_named_with_the_request(
    server: Server, path: str, answer: tuple[int, str], said: str
) -> None:
    server.answers[path] = answer
    with pytest.raises(ApiError) as caught:
        ask(server)
    assert said in str(caught.value)


@pytest.mark.parametrize(("status", "busy"), [(429, True), (503, True), (500, False), (404, False)])
def test_a_busy_pair_is_told_from_a_broken_one(
    server: Server, capsys: pytest.CaptureFixture[str], status: int, busy: bool
) -> None:
    server.answers["/v1/chat/completions"] = (status, "queue is full")
    answer = run_module(api_check, capsys, base=server.base, served_name=MODEL)
    assert (answer["failed"], answer["busy"]) == (True, busy)


def test_no_answer_in_time_is_busy() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(ApiBusy, match="did not answer within 1 s"),
    ):
        call(f"http://127.0.0.1:{silent.getsockname()[1]}/v1/models", timeout=0.6)


def test_nobody_there(server: Server) -> None:
    server.server_close()
    with pytest.raises(ApiError, match="did not answer"):
        call(f"{server.base}/health", timeout=2)


def test_a_proxy_of_the_environment_is_not_asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert call(f"{server.base}/metrics") == "tensorfold_requests_total 1\n"


def test_the_module_reports_or_fails_in_one_line(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    args: dict[str, Any] = {"base": server.base, "served_name": MODEL}
    answer = run_module(api_check, capsys, **args)
    assert (answer["failed"], answer["changed"], answer["answer"]) == (False, False, "Paris.")
    server.answers["/v1/models"] = (404, "gone")
    refused = run_module(api_check, capsys, **args)
    assert (refused["failed"], refused["msg"]) == (True, f"{server.base}/v1/models answered 404: gone")


@pytest.mark.parametrize(
    ("asked", "listening", "fits"),
    [
        ("127.0.0.1", ["127.0.0.1"], True),
        ("127.0.0.1", ["0.0.0.0"], False),
        ("127.0.0.1", ["*"], False),
        # Another program, such as a gateway, may have the port at another address.
        ("127.0.0.1", ["192.0.2.11", "127.0.0.1"], True),
        ("192.0.2.11", ["127.0.0.1"], False),
        ("0.0.0.0", ["0.0.0.0"], True),
        ("::", ["*"], True),
        ("0.0.0.0", ["127.0.0.1"], False),
        ("127.0.0.1", [], False),
    ],
)
def test_x01_an_api_that_listens_elsewhere_than_asked_for_is_refused(
    asked: str, listening: list[str], fits: bool
) -> None:
    listeners = [Listener(address, 8888) for address in listening] + [Listener(asked, 9999)]
    if fits:
        bound(asked, 8888, listeners)
        return
    with pytest.raises(ApiError, match=f"was to listen on {re.escape(asked)} port 8888, and it listens on"):
        bound(asked, 8888, listeners)
