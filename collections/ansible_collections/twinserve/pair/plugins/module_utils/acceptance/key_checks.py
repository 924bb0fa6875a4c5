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
    """Without the key, and with another one, nothing below /v1 is answered; with it, all is."""
    if not api.key:
        raise NotPromised("no key was given: whoever reaches this API may use it")
    said(api.chat("Reply with OK.", reply=16))
    for kind, key in (("no", ""), ("another", secrets.token_hex(16))):
        stranger = replace(api, key=key)
        for answer in (
            stranger.ask("/v1/models"),
            stranger.ask(CHAT, api.chat_body("Reply with OK.", reply=16)),
        ):
            need(answer.status in (401, 403), f"{answer.what} with {kind} key answered {answer.status}")
