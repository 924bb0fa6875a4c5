"""AIPerf's own exports, recorded from version 0.13.0: what is taken from them, and which count as nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.benchmark.export import (
    NotMeasured,
    count,
    measured,
)

RECORDED = Path(__file__).parent / "recorded/aiperf"


def recorded(name: str, **changes: Any) -> dict[str, Any]:
    return {**json.loads((RECORDED / f"{name}.json").read_text()), **changes}


def test_the_numbers_have_our_names_and_units() -> None:
    """80 conversations, half of them with a second question."""
    found = measured(recorded("good"))
    assert found == {
        "requests": 120,
        "seconds": 8.5606,
        "throughput": 1326.356,
        "throughput_per_user": 367.9555,
        "requests_per_second": 14.0108,
        "latency_s": {"mean": 0.2721, "p50": 0.3005, "p90": 0.3489, "p99": 0.4181},
        "ttft_ms": {"mean": 15.6148, "p50": 12.6819, "p90": 24.7893, "p99": 49.5491},
        "itl_ms": {"mean": 2.7344, "p50": 2.649, "p90": 3.028, "p99": 3.5335},
        "prompt_tokens": 51.6667,
        "reply_tokens": 94.6667,
        "cached_percent": 0.0,
        "began": "2026-11-30T10:24:33.294447",
        "ended": "2026-11-30T10:24:41.859267",
    }


def test_failed_requests_are_no_measurement_although_aiperf_ends_well() -> None:
    with pytest.raises(NotMeasured, match="31 of 40 requests failed: .*the server is at capacity"):
        measured(recorded("failing"))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"was_cancelled": True}, "before it was through"),
        ({"is_complete": False}, "before it was through"),
        ({"completed_request_count": None, "request_count": None}, "0 of 0 requests failed"),
        ({"output_token_throughput": {"unit": "tokens/sec", "avg": None}}, "how many tokens a reply has"),
        ({"output_token_throughput": None}, "how many tokens a reply has"),
    ],
)
def test_what_is_cut_empty_or_without_tokens_is_none_either(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(NotMeasured, match=says):
        measured(recorded("good", **changes))


def test_replies_of_one_token_have_no_time_between_tokens() -> None:
    found = measured(recorded("good", inter_token_latency=None))
    assert found["itl_ms"] == {"mean": None, "p50": None, "p90": None, "p99": None}


def test_sent_are_also_those_that_failed() -> None:
    assert count(recorded("failing")) == 40
    assert count({}) == 0
