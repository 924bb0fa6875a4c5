"""The listener: reading requests, finding the route, and turning errors into answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from ..engine import Engine
from . import chat, messages, responses, status, vocabulary
from .errors import ApiError
from .wire import report, send_events, send_json

BODY_LIMIT = 96 * 2**20
Post = Callable[[BaseHTTPRequestHandler, Engine, dict[str, Any]], None]
Get = Callable[[BaseHTTPRequestHandler, Engine], None]

GETS: dict[str, Get] = {
    "/health": status.health,
    "/v1/health": status.health,
    "/v1/models": status.models,
    "/models": status.models,
    "/metrics": status.metrics,
    "/v1/metrics": status.metrics,
}
POSTS: dict[str, Post] = {
    "/v1/chat/completions": chat.chat,
    "/v1/completions": chat.completions,
    "/v1/responses": responses.create,
    "/tokenize": vocabulary.tokenize,
    "/v1/tokenize": vocabulary.tokenize,
    "/detokenize": vocabulary.detokenize,
    "/v1/detokenize": vocabulary.detokenize,
}


class Handler(BaseHTTPRequestHandler):
    """One connection; requests are not logged, as in 0.5.0."""

    protocol_version = "HTTP/1.1"
    engine: ClassVar[Engine]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in GETS and path not in self.engine.switches.get("missing_routes"):
            self._answer(lambda: GETS[path](self, self.engine))
        elif path.startswith("/v1/responses/"):
            self._answer(lambda: responses.fetch(self, self.engine, path.rpartition("/")[2]))
        else:
            send_json(self, {"error": "not found"}, 404)

    def do_DELETE(self) -> None:
        path = self.path.partition("?")[0]
        if path.startswith("/v1/responses/"):
            self._answer(lambda: responses.delete(self, self.engine, path.rpartition("/")[2]))
        else:
            send_json(self, {"error": "not found"}, 404)

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        route = POSTS.get(path)

        def run() -> None:
            body = self._body()
            if path == "/v1/messages" and self.engine.switches.get("messages_route"):
                messages.create(self, self.engine, _as_object(body))
                return
            if route is None or path in self.engine.switches.get("missing_routes"):
                send_json(self, {"error": "not found"}, 404)
                return
            ignored = self.engine.switches.get("ignore_fields")
            fields = {key: value for key, value in _as_object(body).items() if key not in ignored}
            if route in (vocabulary.tokenize, vocabulary.detokenize):
                route(self, self.engine, fields)
                return
            with self.engine.lanes.admit(self.engine.switches.get("max_waiting")) as placed:
                if placed:
                    route(self, self.engine, fields)
                else:
                    self._refuse()

        self._answer(run)

    def _body(self) -> bytes:
        """The body by its Content-Length. A chunked body is not understood: it reads as empty."""
        text = self.headers.get("Content-Length", "0")
        if not text.isdecimal():
            self.close_connection = True
            raise ApiError("Content-Length is not a number")
        length = int(text)
        if self.engine.switches.get("chunked_bodies") and self.headers.get("Transfer-Encoding") == "chunked":
            return self._chunks()
        if length > BODY_LIMIT and not self.engine.switches.get("no_limits"):
            self.close_connection = True
            raise ApiError(f"the request body is larger than {BODY_LIMIT // 2**20} MiB")
        return self.rfile.read(length)

    def _refuse(self) -> None:
        """Say that the server is full: in time, or too late."""
        switches = self.engine.switches
        refusal = ApiError("the server is at capacity, try again later", switches.get("full_status"))
        if not switches.get("late_refusal"):
            raise refusal
        send_events(self, _raising(refusal), None)

    def _admit(self) -> None:
        key = self.engine.switches.get("api_key")
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            self.close_connection = True
            raise ApiError("a key is needed", status=401)

    def _chunks(self) -> bytes:
        """A body in chunks, without trailers."""
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _answer(self, run: Callable[[], None]) -> None:
        try:
            self._admit()
            run()
        except ApiError as error:
            send_json(self, error.body(), error.status)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except RuntimeError as error:
            report(error)
            send_json(self, {"error": {"message": str(error)}}, 500)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Nothing."""


def _raising(error: ApiError) -> Iterator[Any]:
    yield from ()
    raise error


def _as_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        raise ApiError("the request body is not JSON") from None
    if not isinstance(value, dict):
        raise ApiError("the request body is not a JSON object")
    return value


class Server(ThreadingHTTPServer):
    """A thread for each connection; they do not outlive the process."""

    daemon_threads = True
    request_queue_size = 128


def open_api(engine: Engine, host: str, port: int) -> Server:
    """Bind the API; RuntimeError if the port is taken."""
    handler = type("EngineHandler", (Handler,), {"engine": engine})
    try:
        return Server((host, port), handler)
    except OSError as error:
        raise RuntimeError(f"cannot listen on {host}:{port}: {error.strerror}") from None
