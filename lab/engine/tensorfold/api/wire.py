"""What handlers use to answer: JSON, text, and server-sent events."""

from __future__ import annotations

import json
import secrets
import time
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

from ..log import log
from ..reply import Call, Stats
from .errors import ApiError


def new_id(prefix: str) -> str:
    """A fresh id such as chatcmpl-..."""
    return f"{prefix}-{secrets.token_hex(12)}"


def now() -> int:
    """Seconds since the epoch."""
    return int(time.time())


def usage(stats: Stats) -> dict[str, Any]:
    """The usage object."""
    return {
        "prompt_tokens": stats.prompt_tokens,
        "completion_tokens": stats.completion_tokens,
        "total_tokens": stats.prompt_tokens + stats.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": stats.cached},
        "completion_tokens_details": {"reasoning_tokens": stats.reasoning_tokens},
    }


def call_object(call: Call, index: int | None = None) -> dict[str, Any]:
    """A tool call as clients read it: the arguments are JSON text."""
    found: dict[str, Any] = {} if index is None else {"index": index}
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {**found, "id": new_id("call"), "type": "function", "function": function}


def send_json(handler: BaseHTTPRequestHandler, body: Any, status: int = 200) -> None:
    """Answer with JSON."""
    send_text(handler, json.dumps(body), "application/json", status)


def send_text(handler: BaseHTTPRequestHandler, text: str, kind: str, status: int = 200) -> None:
    """Answer with a whole body; the connection stays open unless the handler closes it."""
    data = text.encode()
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(data)))
    if status == 429:
        handler.send_header("Retry-After", "5")
    if handler.close_connection:
        handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(data)


def send_events(
    handler: BaseHTTPRequestHandler, events: Iterator[Any], cut_after: int | None, named: bool = False
) -> None:
    """Answer with a stream that ends with [DONE] and closes the connection.

    An error after the start is an event of the stream, since the status has been sent. `cut_after` ends the
    connection after that many events, as a dying process would. `named` gives each event its type's name.
    """
    handler.close_connection = True
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
    handler.send_header("Cache-Control", "no-cache")
    handler.send_header("Connection", "close")
    handler.end_headers()
    try:
        for count, event in enumerate(events):
            if cut_after is not None and count >= cut_after:
                return
            name = f"event: {event['type']}\n" if named else ""
            handler.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
    except (BrokenPipeError, ConnectionResetError):
        return
    except (ApiError, RuntimeError) as error:
        report(error)
        handler.wfile.write(f"data: {json.dumps({'error': {'message': str(error)}})}\n\n".encode())
    if not named:
        handler.wfile.write(b"data: [DONE]\n\n")


def report(error: Exception) -> None:
    """Log a request's error as the engine does."""
    log(f"request error: {type(error).__name__}: {error}")
    print("".join(traceback.format_exception(error)), end="", flush=True)
