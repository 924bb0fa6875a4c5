"""What a server tells of itself: its window and its counters."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from .client import Api
from .promise import Promise
from .reading import need

LOOKS = 20
GLANCE = 0.1
# A line of Prometheus' text format: a name, perhaps labels, a value.
_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{.*\})? ([-+.\deE]+)(?: |$)", re.MULTILINE)


def window(api: Api, promise: Promise) -> int:
    """Tokens of the longest request."""
    cards = api.ask("/v1/models").good()["data"]
    told = [one.get("max_model_len") for one in cards if one["id"] == promise.served_name]
    return int(told[0] if told and told[0] else api.ask("/health").good()["context_length"])


def running(api: Api, promise: Promise) -> int:
    """Requests that are computed now; those that wait are not."""
    if promise.running_metric is None:
        return int(api.ask("/health").good()["requests_running"])
    return int(metric(api, [promise.running_metric]))


def metric(api: Api, names: Sequence[str]) -> float:
    """The metrics of these names, added up over their labels; one that is missing is wrong."""
    sums = metrics_page(api)
    missing = [name for name in names if name not in sums]
    need(not missing, f"/metrics lacks {', '.join(missing)}")
    return sum(sums[name] for name in names)


def metrics_page(api: Api) -> dict[str, float]:
    """All of /metrics, each added up over its labels."""
    answer = api.ask("/metrics")
    answer.need(200)
    sums: defaultdict[str, float] = defaultdict(float)
    for name, value in _SAMPLE.findall(answer.text):
        sums[name] += float(value)
    return dict(sums)


def lately(look: Callable[[], float], wanted: float) -> float:
    """What is seen, once it is `wanted` or more, or in the end: counters come shortly after an answer."""
    for _ in range(LOOKS):
        seen = look()
        if seen >= wanted:
            break
        time.sleep(GLANCE)
    return seen
