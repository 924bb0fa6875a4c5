"""Tokenize and detokenize, with and without /v1."""

from __future__ import annotations

from .client import Api
from .found import NotPromised
from .promise import Promise
from .reading import need
from .registry import checks

TEXT = "Hello, wörld! 漢字 😀\n\tdef f(x): return x ** 2"
ROUTES = {"tokenize": "", "tokenize_v1": "/v1"}


def tokenize(name: str, api: Api, promise: Promise) -> None:
    """A text becomes tokens, their count is true, and they become the text again."""
    prefix = ROUTES[name]
    if prefix and not promise.tokenize_v1:
        raise NotPromised(f"this engine has no {prefix}/tokenize")
    body = {"model": api.model, "prompt": TEXT, **promise.tokenize_fields}
    found = api.ask(f"{prefix}/tokenize", body).good()
    tokens = found.get("tokens") or []
    need(
        found.get("count") == len(tokens) > 0,
        f"{prefix}/tokenize counts {found.get('count')} of {len(tokens)}",
    )
    back = api.ask(f"{prefix}/detokenize", {"model": api.model, "tokens": tokens}).good().get("prompt")
    need(back == TEXT, f"{prefix}/detokenize gave {back!r} for the tokens of {TEXT!r}")


checks(tokenize, "round_trip", *ROUTES)
