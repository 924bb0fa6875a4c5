"""What AIPerf exported of one measurement (profile_export_aiperf.json), in our words and units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_STATISTICS = {"mean": "avg", "p50": "p50", "p90": "p90", "p99": "p99"}


class NotMeasured(ValueError):
    """It went wrong; the text says how."""


def measured(export: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers. Raises NotMeasured for a run that was cut, had failed requests, or tells no tokens.

    Throughput is in tokens a second over all requests, latencies in seconds, times to the first and between
    tokens in milliseconds.
    """
    if export.get("was_cancelled") or not export.get("is_complete", True):
        raise NotMeasured("AIPerf was ended before it was through")
    done = int(_average(export, "completed_request_count") or _average(export, "request_count") or 0)
    # AIPerf itself ends well as long as one request did.
    wrong = int(_average(export, "error_request_count") or 0)
    if wrong or not done:
        raise NotMeasured(f"{wrong} of {done} requests failed{_first_error(export)}")
    throughput = _average(export, "output_token_throughput")
    if not throughput:
        raise NotMeasured("the engine does not say in its streams how many tokens a reply has (usage)")
    return {
        "requests": done,
        "seconds": _rounded(_average(export, "benchmark_duration")),
        "throughput": _rounded(throughput),
        "throughput_per_user": _rounded(_average(export, "output_token_throughput_per_user")),
        "requests_per_second": _rounded(_average(export, "request_throughput")),
        "latency_s": _statistics(export, "request_latency", 1000),
        "ttft_ms": _statistics(export, "time_to_first_token"),
        "itl_ms": _statistics(export, "inter_token_latency"),
        "prompt_tokens": _rounded(_average(export, "input_sequence_length")),
        "reply_tokens": _rounded(_average(export, "output_sequence_length")),
        "cached_percent": _rounded(_average(export, "overall_usage_prompt_cache_read_pct")),
        "began": export.get("start_time"),
        "ended": export.get("end_time"),
    }


def count(export: Mapping[str, Any]) -> int:
    """How many requests were sent in that phase."""
    return int(_average(export, "completed_request_count") or _average(export, "request_count") or 0)


def _average(export: Mapping[str, Any], name: str) -> float | None:
    value = (export.get(name) or {}).get("avg")
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _statistics(export: Mapping[str, Any], name: str, divisor: float = 1) -> dict[str, float | None]:
    found = export.get(name) or {}
    values = {word: found.get(key) for word, key in _STATISTICS.items()}
    return {word: None if value is None else _rounded(value / divisor) for word, value in values.items()}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _first_error(export: Mapping[str, Any]) -> str:
    """What AIPerf says of the most frequent failure."""
    for one in export.get("error_summary") or ():
        details = one.get("error_details") or {}
        if text := details.get("message") or details.get("type"):
            return f": {' '.join(str(text).split())[:200]}"
    return ""
