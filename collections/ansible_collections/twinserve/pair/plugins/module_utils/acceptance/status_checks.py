"""Models, health and metrics."""

from __future__ import annotations

import re

from .client import Api
from .promise import Promise
from .reading import need, said
from .registry import check

COUNTERS = (
    "requests_total",
    "prompt_tokens_total",
    "completion_tokens_total",
    "cached_tokens_total",
    "context_length",
)
POOL = ("pool_tokens", "pool_free_tokens", "kept_prompts", "streams")


@check
def models(api: Api, promise: Promise) -> None:
    """GET /v1/models lists the served name."""
    listed = [str(one.get("id")) for one in api.ask("/v1/models").good().get("data", [])]
    need(promise.served_name in listed, f"/v1/models lists {listed} instead of {promise.served_name}")


@check
def health(api: Api, promise: Promise) -> None:
    """GET /health has the counters and the window, and the pool where several requests share one."""
    wanted = COUNTERS + (POOL if promise.health_pool and promise.parallel > 1 else ())
    found = api.ask("/health").good()
    missing = [name for name in wanted if name not in found]
    need(not missing, f"/health lacks {', '.join(missing)}")
    need(found["context_length"] > 0, f"/health names a window of {found['context_length']} tokens")


@check
def metrics(api: Api, promise: Promise) -> None:
    """GET /metrics counts: an answered request makes a counter rise."""
    before = _counted(api)
    said(api.chat("Reply with OK.", max_tokens=16))
    after = _counted(api)
    need(bool(before), "/metrics shows no counters")
    need(after != before, "/metrics shows the same counters after an answered request")


def _counted(api: Api) -> dict[str, str]:
    answer = api.ask("/metrics")
    answer.need(200)
    return dict(re.findall(r"^([a-zA-Z_:][\w:]*_total(?:\{[^}]*\})?) (\S+)$", answer.text, re.MULTILINE))
