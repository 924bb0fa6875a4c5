"""POST /tokenize and /detokenize."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from typing import Any

from ..engine import Engine
from ..tokens import decode
from ..wording import prompt_ids
from .compose import read_messages, read_prompt
from .errors import ApiError
from .fields import effort
from .toolcalls import read_tools
from .wire import send_json


def tokenize(handler: BaseHTTPRequestHandler, engine: Engine, body: dict[str, Any]) -> None:
    """Ids of a prompt or of messages as the chat route would write them."""
    shape = engine.shape
    if body.get("messages") is not None:
        ids = prompt_ids(
            read_messages(body), read_tools(body), [], effort(body, shape.thinking, shape.effort) is not None
        )
    else:
        _, ids = read_prompt(body.get("prompt"))
    send_json(handler, {"count": len(ids), "max_model_len": shape.window, "tokens": ids})


def detokenize(handler: BaseHTTPRequestHandler, engine: Engine, body: dict[str, Any]) -> None:
    """The text of ids."""
    tokens = body.get("tokens")
    if not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
        raise ApiError("tokens must be a list of token ids", param="tokens")
    try:
        text = decode(tokens)
        if engine.switches.get("lossy_detokenize"):
            text = text.encode("ascii", "replace").decode()
        send_json(handler, {"prompt": text})
    except ValueError as error:
        raise ApiError(str(error), param="tokens") from None
