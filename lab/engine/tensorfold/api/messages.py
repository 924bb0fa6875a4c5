"""POST /v1/messages, which this release does not have: the lab can switch on what later ones answer."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from typing import Any

from ..engine import Engine
from ..reply import Stats
from .chat import joined
from .compose import read_chat
from .wire import new_id, send_json


def create(handler: BaseHTTPRequestHandler, engine: Engine, body: dict[str, Any]) -> None:
    """One whole message; not streamed."""
    stats = Stats()
    deltas = list(engine.generate(read_chat(body, engine).job, stats))
    answer = {
        "id": new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": engine.shape.name,
        "content": [{"type": "text", "text": joined(deltas, "content")}],
        "stop_reason": "max_tokens" if stats.finish == "length" else "end_turn",
        "usage": {"input_tokens": stats.prompt_tokens, "output_tokens": stats.completion_tokens},
    }
    send_json(handler, answer)
