"""How far long work is: rate, time to go, and the line that people read."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.progress import Meter, duration, eta, line


def metered(*seen: tuple[float, int], span: float = 60.0) -> Meter:
    meter = Meter(span)
    for now, done in seen:
        meter.add(now, done)
    return meter


@pytest.mark.parametrize(
    ("seen", "rate"),
    [
        ([], None),
        ([(5.0, 100)], None),
        ([(5.0, 100), (5.0, 200)], None),
        ([(0.0, 0), (10.0, 1000)], 100.0),
        ([(0.0, 0), (10.0, 1000), (20.0, 1000)], 50.0),
        # It moved once and then stood still for longer than the window.
        ([(0.0, 0), (10.0, 1000), (30.0, 1000), (60.0, 1000), (100.0, 1000)], 0.0),
        # Begun anew: what was before does not count.
        ([(0.0, 5000), (10.0, 6000), (20.0, 0), (30.0, 100)], 10.0),
    ],
)
def test_the_rate_is_that_of_the_window(seen: list[tuple[float, int]], rate: float | None) -> None:
    assert metered(*seen).rate == rate


def test_old_moments_are_forgotten() -> None:
    meter = metered(*((float(second), second * second) for second in range(1000)), span=10)
    assert meter.rate == pytest.approx((999**2 - 989**2) / 10)


def test_the_five_numbers() -> None:
    meter = metered((0.0, 0), (10.0, 1000))
    assert meter.numbers(3000, 1.5e9) == {
        "bytes": 1000, "total": 3000, "rate": 100.0, "eta": 20.0, "updated": 1.5e9,
    }  # fmt: skip
    assert Meter().numbers(None, 7.0) == {
        "bytes": 0, "total": None, "rate": None, "eta": None, "updated": 7.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("done", "total", "rate", "seconds"),
    [
        (10, None, 5.0, None),
        (10, 30, 5.0, 4.0),
        (10, 30, 0.0, None),
        (10, 30, None, None),
        (30, 30, None, 0.0),
        (40, 30, 5.0, 0.0),
    ],
)
def test_time_to_go(done: int, total: int | None, rate: float | None, seconds: float | None) -> None:
    assert eta(done, total, rate) == seconds


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ({"bytes": 12_300_000_000}, "12.3 GB"),
        (
            {"bytes": 12_300_000_000, "total": 176_000_000_000, "rate": 310e6, "eta": 528.0},
            "12.3 of 176.0 GB (6%), 310 MB/s, 9 min left",
        ),
        ({"bytes": 0, "total": 10**9, "rate": 0.0, "eta": None}, "0.0 of 1.0 GB (0%), 0.0 MB/s"),
        ({"bytes": 2 * 10**9, "total": 10**9, "rate": 1.25e9, "eta": 0.0}, "2.0 of 1.0 GB (99%), 1.2 GB/s"),
    ],
)
def test_one_line_for_people(numbers: dict[str, Any], text: str) -> None:
    assert line(numbers) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (5300, "88 min"), (7500, "2 h 05 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
