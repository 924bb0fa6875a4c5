"""A plain client of the API: it gives back whatever was answered, and judges only what it is told to."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from .found import Unanswered, Wrong
from .manner import Manner

CHAT = "/v1/chat/completions"
SECONDS = 600.0  # a long prompt on a busy pair takes minutes


def netloc(host: str, port: int | str) -> str:
    """Host and port as a URL has them: an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True)
class Answer:
    """One whole answer."""

    what: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode(errors="replace")

    def json(self) -> dict[str, Any]:
        """The body, which must be a JSON object."""
        try:
            value = json.loads(self.body)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise Wrong(f"{self.what} answered something else than a JSON object: {self.text[:200]!r}")
        return value

    def good(self) -> dict[str, Any]:
        """The JSON object of an answer that must be 200."""
        self.need(200)
        return self.json()

    def need(self, *statuses: int) -> None:
        """Refuse any other status."""
        if self.status not in statuses:
            wanted = " or ".join(map(str, statuses))
            raise Wrong(f"{self.what} answered {self.status} instead of {wanted}: {self.text[:300]}")


@dataclass(frozen=True)
class Api:
    """Where the API is, as a client without proxies sees it; `key` goes into a header and into no message."""

    base: str
    model: str
    key: str = ""
    ca_file: str = ""
    seconds: float = SECONDS
    manner: Manner = field(default_factory=Manner)

    def ask(self, path: str, body: Mapping[str, Any] | None = None, method: str | None = None) -> Answer:
        """GET, or POST of a JSON body."""
        data = None if body is None else json.dumps(body).encode()
        return self._send(method or ("GET" if data is None else "POST"), path, data)

    def chat(self, content: Any, **more: Any) -> Answer:
        """One user message; see chat_body."""
        return self.ask(CHAT, self.chat_body(content, **more))

    def chat_body(
        self, content: Any, reply: int | None = None, effort: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """The request of such a message: the likeliest answer, after as little reasoning as possible.

        `reply` is the most tokens that the answer itself may take; `max_tokens` would count thoughts too.
        `effort` is the amount of reasoning, in the engine's words.
        """
        messages = [{"role": "user", "content": content}]
        budget = {} if reply is None else {"max_tokens": self.manner.budget(reply)}
        return {"model": self.model, "messages": messages, **self.manner.fields(effort), **budget, **more}

    def chunked(self, path: str, body: Mapping[str, Any]) -> Answer:
        """POST in chunks, without a length."""
        data = json.dumps(body).encode()
        half = len(data) // 2
        return self._send("POST", path, iter([data[:half], data[half:]]))

    def announce(self, path: str, length: int) -> Answer:
        """POST that only says how long its body would be."""
        headers = {"Content-Length": str(length), "Expect": "100-continue"}
        return self._send("POST", path, None, headers)

    def events(self, path: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The events of a stream, which must be 200 and, where events have no names, end with [DONE]."""
        answer = self.ask(path, {**body, "stream": True})
        answer.need(200)
        lines = [line for line in answer.text.splitlines() if line.startswith(("data:", "event:"))]
        data = [line[5:].strip() for line in lines if line.startswith("data:")]
        if not any(line.startswith("event:") for line in lines) and data[-1:] != ["[DONE]"]:
            raise Wrong(f"the stream of {path} ended without [DONE], after {len(data)} events")
        events = [json.loads(line) for line in data if line != "[DONE]"]
        errors = [event["error"] for event in events if event.get("error")]
        if errors:
            raise Wrong(f"the stream of {path} brought an error: {errors[0]}")
        return events

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | Iterator[bytes] | None,
        more: Mapping[str, str] | None = None,
    ) -> Answer:
        headers = {"Content-Type": "application/json", **(more or {})}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        what, began = f"{method} {path}", time.monotonic()
        connection = self.connect()
        try:
            # Who refuses a body may answer, and close, before he has read it all.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, urlsplit(self.base).path.rstrip("/") + path, body, headers)
            answer = connection.getresponse()
            return Answer(what, answer.status, dict(answer.headers), answer.read(), time.monotonic() - began)
        except (OSError, http.client.HTTPException) as error:
            raise Unanswered(f"{what} was not answered: {type(error).__name__} {error}") from error
        finally:
            connection.close()

    def connect(self) -> http.client.HTTPConnection:
        """A connection that is not open yet."""
        where = urlsplit(self.base)
        host = where.hostname or ""
        if where.scheme == "https":
            trust = ssl.create_default_context(cafile=self.ca_file or None)
            return http.client.HTTPSConnection(host, where.port, timeout=self.seconds, context=trust)
        return http.client.HTTPConnection(host, where.port, timeout=self.seconds)
