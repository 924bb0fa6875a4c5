"""The Prometheus text of /metrics."""

from __future__ import annotations

from .engine import Engine

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


def exposition(engine: Engine) -> str:
    """All metrics: the server's under `tensorfold:`, those of /health under `tensorfold_health:`."""
    totals, lanes, shape = engine.totals, engine.lanes, engine.shape
    used = min(shape.pool, engine.kept.tokens())
    lines: list[str] = []
    for name, kind, value in (
        ("tensorfold:requests_running", "gauge", lanes.running),
        ("tensorfold:requests_waiting", "gauge", lanes.waiting),
        ("tensorfold:prompt_tokens_total", "counter", totals.prompt_tokens),
        ("tensorfold:generation_tokens_total", "counter", totals.completion_tokens),
        ("tensorfold:mtp_drafted_total", "counter", totals.drafted),
        ("tensorfold:mtp_accepted_total", "counter", totals.accepted),
        ("tensorfold_health:requests_total", "counter", totals.requests),
        ("tensorfold_health:completion_tokens_total", "counter", totals.completion_tokens),
        ("tensorfold_health:cached_tokens_total", "counter", totals.cached_tokens),
        ("tensorfold_health:rounds_total", "counter", totals.rounds),
        ("tensorfold_health:prefill_seconds_total", "counter", round(totals.prefill_seconds, 6)),
        ("tensorfold_health:decode_seconds_total", "counter", round(totals.decode_seconds, 6)),
        ("tensorfold_health:context_length", "gauge", shape.window),
        ("tensorfold_health:streams_max", "gauge", lanes.width),
        ("tensorfold_health:pool_tokens", "gauge", shape.pool),
        ("tensorfold_health:pool_free_tokens", "gauge", shape.pool - used),
        ("tensorfold_health:kept_prompts", "gauge", engine.kept.count()),
    ):
        lines += [f"# TYPE {name} {kind}", f"{name} {value}"]
    lines += ["# TYPE tensorfold:kv_cache_usage_ratio gauge"]
    lines += [f'tensorfold:kv_cache_usage_ratio{{pool="main"}} {used / max(1, shape.pool):.6f}']
    lines += ["# TYPE tensorfold_health:streams gauge"]
    states = (
        ("decoding", lanes.running - lanes.prefilling),
        ("prefilling", lanes.prefilling),
        ("filling", lanes.waiting),
        ("paused", 0),
    )
    lines += [f'tensorfold_health:streams{{state="{state}"}} {count}' for state, count in states]
    lines += _histogram("tensorfold:request_latency_seconds", totals.latencies)
    lines += _histogram("tensorfold:time_to_first_token_seconds", totals.first_tokens)
    return "\n".join(lines) + "\n"


def _histogram(name: str, values: list[float]) -> list[str]:
    lines = [f"# TYPE {name} histogram"]
    for bound in BUCKETS:
        lines.append(f'{name}_bucket{{le="{bound:g}"}} {sum(value <= bound for value in values)}')
    lines.append(f'{name}_bucket{{le="+Inf"}} {len(values)}')
    return [*lines, f"{name}_sum {sum(values):.6f}", f"{name}_count {len(values)}"]
