"""How far long work is: the rate of the last seconds, the time left, the line for people, the file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import progress
from ansible_collections.twinserve.pair.plugins.module_utils.progress import Meter, duration, line, measure

GB = 10**9


def shown(done: int, total: int, rate: float, how: str = "") -> str:
    return line(asdict(measure(done, total, rate, how)))


@pytest.mark.parametrize(
    ("done", "total", "rate", "how", "said"),
    [
        (
            int(81.3 * GB),
            int(175.6 * GB),
            2.9 * GB,
            "on 2 rails",
            "81.3 of 175.6 GB, 2.9 GB/s on 2 rails, 33 s left",
        ),
        (12 * 10**6, 512 * 10**6, 46e6, "on 1 rail", "12 of 512 MB, 46 MB/s on 1 rail, 11 s left"),
        (3 * GB, 0, 100e6, "", "3.0 GB, 100 MB/s"),
        (0, 176 * GB, 0.0, "on 2 rails", "0.0 of 176.0 GB"),
        (176 * GB, 176 * GB, 1e9, "", "176.0 of 176.0 GB, 1.0 GB/s"),
    ],
)
def test_the_line_says_bytes_rate_and_time_left(
    done: int, total: int, rate: float, how: str, said: str
) -> None:
    assert shown(done, total, rate, how) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (99, "99 s"), (100, "2 min"), (3540, "59 min"), (3599, "1 h 0 min"), (7500, "2 h 5 min")],
)
def test_times_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_time_left_needs_a_rate_and_a_total() -> None:
    assert measure(5, 10, 2.5).left == 2
    assert measure(5, 0, 2.5).left is None
    assert measure(5, 10, 0).left is None
    assert measure(12, 10, 1).left == 0


def test_the_rate_is_that_of_the_last_seconds() -> None:
    meter = Meter(window=10)
    assert meter.rate(0, 0) == 0
    assert meter.rate(1, 100) == 100
    rates = [meter.rate(second, 100) for second in range(2, 30)]
    assert rates[0] == 50
    assert rates[-1] == 0, "a pause is no rate of long ago"
    assert meter.rate(30, 1100) == 100


def test_what_comes_back_is_no_negative_rate() -> None:
    meter = Meter()
    meter.rate(0, 100)
    assert meter.rate(1, 50) == 0


def test_the_file_tells_what_was_written_last(tmp_path: Path) -> None:
    path = tmp_path / "progress/copy.json"
    assert progress.read(path) is None
    progress.write(path, measure(5, 10, 1.0, "on 2 rails", ["a rail is lost"]))
    found = progress.read(path)
    assert found and (found["done"], found["left"], found["warnings"]) == (5, 5.0, ["a rail is lost"])
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 0}', '{"done": 1'])
def test_a_file_that_is_none_of_ours_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    assert progress.read(path) is None
