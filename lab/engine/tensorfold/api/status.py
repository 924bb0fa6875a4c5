"""GET /health, /v1/models and /metrics: answered while the process lives, whatever the decoder does."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from typing import Any

from ..engine import Engine
from ..metrics import exposition
from .wire import send_json, send_text

FROZEN = "# TYPE tensorfold_health:requests_total counter\ntensorfold_health:requests_total 1\n"


def models(handler: BaseHTTPRequestHandler, engine: Engine) -> None:
    """The one model."""
    entry = {
        "id": engine.switches.get("wrong_model") or engine.shape.name,
        "object": "model",
        "owned_by": "tensorfold",
    }
    send_json(handler, {"object": "list", "data": [entry]})


def metrics(handler: BaseHTTPRequestHandler, engine: Engine) -> None:
    """Prometheus text."""
    text = FROZEN if engine.switches.get("frozen_metrics") else exposition(engine)
    send_text(handler, text, "text/plain; version=0.0.4")


def health(handler: BaseHTTPRequestHandler, engine: Engine) -> None:
    """Counters; streams and pool only when more than one request can be decoded."""
    hidden = engine.switches.get("health_without")
    send_json(handler, {key: value for key, value in health_fields(engine).items() if key not in hidden})


def health_fields(engine: Engine) -> dict[str, Any]:
    """The body of /health."""
    totals, lanes, shape = engine.totals, engine.lanes, engine.shape
    fields: dict[str, Any] = {
        "ok": True,
        "backend": "tensorfold",
        "busy": lanes.running > 0,
        "requests_running": lanes.running,
        "requests_total": totals.requests,
        "prompt_tokens_total": totals.prompt_tokens,
        "completion_tokens_total": totals.completion_tokens,
        "prefill_seconds_total": round(totals.prefill_seconds, 3),
        "decode_seconds_total": round(totals.decode_seconds, 3),
        "cached_tokens_total": totals.cached_tokens,
        "rounds_total": totals.rounds,
        "drafted_total": totals.drafted,
        "accepted_total": totals.accepted,
    }
    if shape.parallel > 1:
        fields["streams"] = streams(engine)
        fields["pool_tokens"] = shape.pool
        fields["pool_free_tokens"] = max(0, shape.pool - engine.kept.tokens())
        fields["kept_prompts"] = engine.kept.count()
    if shape.parallel > 1 and shape.multi_prefill:
        fields["multi_prefill"] = {"groups": 0, "rows": 0}
    fields["context_length"] = shape.window
    return fields


def streams(engine: Engine) -> dict[str, int]:
    """Requests by what they are doing."""
    lanes = engine.lanes
    return {
        "decoding": lanes.running - lanes.prefilling,
        "prefilling": lanes.prefilling,
        "max": lanes.width,
        "filling": lanes.waiting,
        "paused": 0,
    }
