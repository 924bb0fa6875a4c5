"""Models, health and metrics."""

from __future__ import annotations

import re
from functools import partial

from .client import Api
from .observed import lately, metric, window
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
    """GET /health has the counters and the window, and the pool where several requests share one.

    An engine with an empty /health (`health_metrics`) has counters in /metrics, and its window in /v1/models.
    """
    if promise.health_metrics:
        api.ask("/health").need(200)
        metric(api, [name for names in promise.health_metrics.values() for name in names])
        need(window(api, promise) > 0, "/v1/models names no window")
        return
    wanted = COUNTERS + (POOL if promise.health_pool and promise.parallel > 1 else ())
    found = api.ask("/health").good()
    missing = [name for name in wanted if name not in found]
    need(not missing, f"/health lacks {', '.join(missing)}")
    need(found["context_length"] > 0, f"/health names a window of {found['context_length']} tokens")


@check
def metrics(api: Api, promise: Promise) -> None:
    """GET /metrics counts: an answered request makes a counter rise."""
    if promise.health_metrics:
        _tokens_are_counted(api, promise)
        return
    before = _counted(api)
    said(api.chat("Reply with OK.", reply=16))
    after = _counted(api)
    need(bool(before), "/metrics shows no counters")
    need(after != before, "/metrics shows the same counters after an answered request")


def _tokens_are_counted(api: Api, promise: Promise) -> None:
    """Those of a request, at least: others count too."""
    kinds = {"prompt_tokens": "prompt_tokens_total", "completion_tokens": "completion_tokens_total"}
    before = {kind: metric(api, promise.health_metrics[name]) for kind, name in kinds.items()}
    answer = api.chat("Reply with OK.", reply=16)
    said(answer)
    for kind, name in kinds.items():
        names, more = promise.health_metrics[name], answer.json()["usage"][kind]
        counted = lately(partial(metric, api, names), before[kind] + more) - before[kind]
        need(counted >= more, f"{', '.join(names)} rose by {counted:.0f}, and the answer says {more} {kind}")


def _counted(api: Api) -> dict[str, str]:
    answer = api.ask("/metrics")
    answer.need(200)
    return dict(re.findall(r"^([a-zA-Z_:][\w:]*_total(?:\{[^}]*\})?) (\S+)$", answer.text, re.MULTILINE))
