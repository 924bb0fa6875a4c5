"""Who may ask, where a key is set."""

from __future__ import annotations

import secrets
from dataclasses import replace

from .client import CHAT, Api
from .found import NotPromised
from .promise import Promise
from .reading import need, said
from .registry import check


@check
def key_required(api: Api, promise: Promise) -> None:
    """With the key the API answers; without it, and with another one, no route to the model does."""
    if not api.key:
        raise NotPromised("no key was given: whoever reaches this API may use it")
    body = api.chat_body("Reply with OK.", reply=16)
    said(api.ask(CHAT, body))
    for kind, key in (("no", ""), ("another", secrets.token_hex(16))):
        stranger = replace(api, key=key)
        for answer in (stranger.ask("/v1/models"), stranger.ask(CHAT, body)):
            need(answer.status in (401, 403), f"{answer.what} with {kind} key answered {answer.status}")
        for answer in (stranger.ask(path, body) for path in promise.more_chat_routes):
            need(answer.status in (401, 403, 404), f"{answer.what} with {kind} key answered {answer.status}")
