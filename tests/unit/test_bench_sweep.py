"""The sweep: what is finished is kept, what went wrong is measured again, others are left alone."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fake_bench
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.benchmark import __main__ as program
from ansible_collections.twinserve.pair.plugins.module_utils.benchmark import install, others, sweep
from test_bench_plan import made
from test_bench_report import ABOUT

QUIET: dict[str, Any] = {"requests_running": 0, "requests_total": 7}
COLLECTIONS = Path(__file__).resolve().parents[2] / "collections"


class Bench:
    """A folder of runs, with programs that stand in for AIPerf and its Python."""

    def __init__(self, home: Path) -> None:
        self.home, self.folder = home / "tool", home / "run"
        self.program = fake_bench.programs(self.home)
        self.folder.mkdir()

    def plan(self, url: str, counts: list[int], **changes: Any) -> dict[str, Any]:
        own = {"url": url, "user": fake_bench.me(), "program": str(self.program), "about": ABOUT}
        return {**made(bench_concurrency=counts), **own, **changes}

    def run(self, url: str, counts: list[int], key: str = "", again: bool = False, **changes: Any) -> str:
        plan = self.plan(url, counts, **changes)
        return sweep.Sweep(plan, self.folder, key, again, span=0.05, pause=0.02).run()

    @property
    def calls(self) -> list[str]:
        """Concurrency, and key, of each call of AIPerf."""
        path = self.home / "calls"
        return [line.rstrip() for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def report(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "report.json").read_text()))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_each_concurrency_is_measured_once_and_reported(bench: Bench) -> None:
    with fake_bench.api(dict(QUIET)) as url:
        said = bench.run(url, [1, 4])
    assert bench.calls == ["1", "4"]
    assert "peaks at concurrency 1: 1326.4 tokens/s" in said
    assert [one["concurrency"] for one in bench.report["levels"]] == [1, 4]
    assert (bench.folder / "report.png").read_text() == "drawn\n"
    assert bench.report["levels"][0]["effective"] == ABOUT["effective"]
    assert "| 4 | 1326.4 |" in (bench.folder / "report.md").read_text()


def test_what_is_finished_is_not_measured_again(bench: Bench) -> None:
    with fake_bench.api(dict(QUIET)) as url:
        bench.run(url, [1, 4])
        bench.run(url, [1, 2, 4])
    assert bench.calls == ["1", "4", "2"]
    assert [one["concurrency"] for one in bench.report["levels"]] == [1, 2, 4]
    assert sweep.finished(bench.folder) == [1, 2, 4]


def test_what_went_wrong_is_told_while_the_others_are_measured_and_is_measured_again(bench: Bench) -> None:
    (bench.home / "fail-2").touch()
    (bench.home / "silent-4").touch()
    with fake_bench.api(dict(QUIET)) as url:
        with pytest.raises(sweep.SweepError, match="concurrency 2: 31 of 40 requests failed") as told:
            bench.run(url, [1, 2, 4, 8])
        assert "concurrency 4: AIPerf ended with 1 and no result" in str(told.value)
        assert [one["concurrency"] for one in bench.report["failed"]] == [2, 4]
        assert sweep.finished(bench.folder) == [1, 8]
        (bench.home / "fail-2").unlink()
        (bench.home / "silent-4").unlink()
        bench.run(url, [1, 2, 4, 8])
    assert bench.calls == ["1", "2", "4", "8", "2", "4"]
    assert bench.report["failed"] == []


def test_nothing_is_sent_while_requests_of_others_run(bench: Bench) -> None:
    with fake_bench.api({**QUIET, "requests_running": 3}) as url:
        with pytest.raises(others.Unquiet, match="3 requests of others run: .*bench_while_busy=true"):
            bench.run(url, [1])
        assert bench.calls == []
        bench.run(url, [1], while_busy=True)
    assert "allowed to run" in " ".join(bench.report["remarks"])


def test_short_requests_of_others_are_seen_by_the_total(bench: Bench) -> None:
    with (
        fake_bench.api({**QUIET, "step": 5}) as url,
        pytest.raises(others.Unquiet, match="requests of others within"),
    ):
        bench.run(url, [1])


@pytest.mark.parametrize(
    ("running", "quiet"),
    [([0, 1], False), ([*[0] * 12, 1], False), ([1, 1, 0], True), ([*[0] * 12, *[1] * 12, 0], True)],
)
def test_a_request_that_begins_while_it_is_watched_has_to_end(running: list[int], quiet: bool) -> None:
    """The canary does; what a request of others does is not known."""
    looks = itertools.chain(running, itertools.repeat(running[-1]))
    with contextlib.nullcontext() if quiet else pytest.raises(others.Unquiet, match="1 requests of others"):
        others.need_quiet(lambda: others.Seen(next(looks), 7), 60, span=0.02)


def test_an_engine_is_asked_by_the_names_of_its_metrics(bench: Bench) -> None:
    names = {"requests_running": ["x:running", "x:waiting"], "requests_total": ["x:done"]}
    page = 'x:running{model="a"} 1\nx:waiting 2\nx:done{reason="stop"} 9\nx:done{reason="length"} 1\n'
    with fake_bench.api({}, page) as url, pytest.raises(others.Unquiet, match="3 requests of others run"):
        bench.run(url, [1], health_metrics=names)


def test_a_pair_that_does_not_tell_is_not_measured_unless_told_so(bench: Bench) -> None:
    with fake_bench.api({}) as url:
        with pytest.raises(others.Unquiet, match="does not tell whether requests of others run"):
            bench.run(url, [1])
        bench.run(url, [1], while_busy=True)
    assert bench.report["levels"][0]["others"] is None


@pytest.mark.parametrize(
    ("before", "after", "strangers"),
    [
        ((0, 10), (0, 135), 0),
        ((0, 10), (0, 145), 9),
        ((None, None), (0, 9), None),
        ((0, 500), (0, 20), None),  # the engine began anew
    ],
)
def test_requests_beyond_ours_and_canaries_are_strangers(
    before: tuple[Any, Any], after: tuple[Any, Any], strangers: int | None
) -> None:
    """124 are ours; in 90 s the supervisor asks at most twice."""
    assert others.strangers(others.Seen(*before), others.Seen(*after), 124, 90, 60) == strangers


def test_strangers_are_in_the_report(bench: Bench) -> None:
    with fake_bench.api({**QUIET, "step": 400}) as url:
        bench.run(url, [1], while_busy=True)
    assert bench.report["levels"][0]["others"] > 0
    assert "requests of others ran during concurrency 1" in " ".join(bench.report["remarks"])


@pytest.mark.parametrize("spoilt", [{"busy": True}, {"others": 3}, {"others": None}])
def test_a_measurement_that_others_spoilt_is_open_unless_they_may_run(
    bench: Bench, spoilt: dict[str, Any]
) -> None:
    with fake_bench.api(dict(QUIET)) as url:
        bench.run(url, [1])
        (path,) = bench.folder.glob("*/result.json")
        path.write_text(json.dumps(json.loads(path.read_text()) | spoilt))
        bench.run(url, [1], while_busy=True)
        assert bench.calls == ["1"]
        assert (sweep.finished(bench.folder, True), sweep.finished(bench.folder)) == ([1], [])
        bench.run(url, [1])
        assert bench.calls == ["1", "1"]
        assert sweep.finished(bench.folder) == [1]


def test_an_api_that_is_not_there_is_told(bench: Bench) -> None:
    with pytest.raises(sweep.SweepError, match="http://127.0.0.1:9 does not answer"):
        bench.run("http://127.0.0.1:9", [1])


def test_numbers_outlive_a_picture_that_cannot_be_drawn(bench: Bench) -> None:
    (bench.home / "no-plots").touch()
    (bench.folder / "report.png").touch()
    with (
        fake_bench.api(dict(QUIET)) as url,
        pytest.raises(sweep.SweepError, match="plots cannot be drawn: no mod"),
    ):
        bench.run(url, [1, 4])
    assert sweep.finished(bench.folder) == [1, 4]
    assert len(bench.report["levels"]) == 2
    assert list(bench.folder.glob("report.png")) == [], "that of other numbers"


def test_the_key_is_in_no_file_and_no_command_line(bench: Bench) -> None:
    with fake_bench.api(dict(QUIET)) as url:
        bench.run(url, [1], key="sesame")
    assert bench.calls == ["1 sesame"]  # what the program found in its environment
    assert "sesame" not in (bench.home / "command-lines").read_text()
    files = [path for path in bench.folder.rglob("*") if path.is_file()]
    assert [path for path in files if b"sesame" in path.read_bytes()] == []


def wait_for_none(words: str) -> None:
    """Until no process has these words; the bound only ends a test that would hang."""
    limit = time.monotonic() + 20
    while subprocess.run(["pgrep", "-f", words], check=False, capture_output=True).returncode == 0:
        assert time.monotonic() < limit, f"{words} still runs"
        time.sleep(0.1)


def sweep_program(bench: Bench, url: str, *words: str) -> subprocess.Popen[str]:
    """The sweep as the job runs it, in a process of its own."""
    (bench.folder / "plan.json").write_text(json.dumps(bench.plan(url, [1, 4], while_busy=True)))
    module = "ansible_collections.twinserve.pair.plugins.module_utils.benchmark"
    env = {**os.environ, "PYTHONPATH": str(COLLECTIONS), program.KEY: ""}
    argv = [sys.executable, "-m", module, "sweep", str(bench.folder), *words]
    return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_sweep_that_is_ended_takes_aiperf_along_and_goes_on_the_next_time(bench: Bench) -> None:
    (bench.home / "wait-4").touch()
    with fake_bench.api(dict(QUIET)) as url:
        running = sweep_program(bench, url)
        while bench.calls != ["1", "4"]:
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate()
        assert running.returncode == 143
        assert said.splitlines()[-1].startswith("ended from outside: what is finished is kept")
        wait_for_none(str(bench.home))
        assert sweep.finished(bench.folder, while_busy=True) == [1]
        (bench.home / "wait-4").unlink()
        again = sweep_program(bench, url)
        said, _ = again.communicate()
    assert again.returncode == 0, said
    assert bench.calls == ["1", "4", "4"]


def test_aiperf_is_ended_when_no_reply_comes_any_more_and_the_others_are_measured(bench: Bench) -> None:
    (bench.home / "wait-1").touch()
    with fake_bench.api(dict(QUIET)) as url:
        plan = bench.plan(url, [1, 4])
        one = sweep.Sweep(plan, bench.folder, span=0.05, pause=0.02, patience=3.0)
        with pytest.raises(sweep.SweepError, match="concurrency 1: no reply came for 3 s"):
            one.run()
    wait_for_none(str(bench.home))
    assert sweep.finished(bench.folder) == [4]


def test_all_is_measured_again_on_request(bench: Bench) -> None:
    with fake_bench.api(dict(QUIET)) as url:
        for words in ((), ("--again",)):
            done = sweep_program(bench, url, *words)
            said, _ = done.communicate()
            assert done.returncode == 0, said
    assert bench.calls == ["1", "4", "1", "4"]


def test_what_is_measured_again_is_kept_until_its_turn_has_come(bench: Bench) -> None:
    with fake_bench.api({**QUIET, "requests_running": 3}) as url:
        bench.run(url, [1, 4], while_busy=True)
        before = [(path, path.stat().st_mtime_ns) for path in bench.folder.glob("*/result.json")]
        with pytest.raises(others.Unquiet):
            bench.run(url, [1, 4], again=True)
    assert bench.calls == ["1", "4"]
    assert [(path, path.stat().st_mtime_ns) for path in bench.folder.glob("*/result.json")] == before
    assert len(before) == 2


def test_the_file_of_the_key_goes_at_the_start_and_at_the_end(bench: Bench, tmp_path: Path) -> None:
    """systemd has read it by then; a run that attaches lays it down once more, and may be cut."""
    secret = tmp_path / "secret.env"
    secret.touch()
    (bench.home / "wait-1").touch()
    with fake_bench.api(dict(QUIET)) as url:
        running = sweep_program(bench, url, f"--secret={secret}")
        while bench.calls != ["1"]:
            assert running.poll() is None
            time.sleep(0.05)
        assert not secret.exists()
        secret.touch()
        running.send_signal(signal.SIGTERM)
        running.communicate()
    assert running.returncode == 143
    assert not secret.exists()


def test_the_file_of_the_proxy_goes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "HOME", str(tmp_path))
    secret = tmp_path / "secret.env"
    secret.touch()
    words = [f"--{name}=false" for name in ("version", "python", "pip", "constraints")]
    assert program.main(["install", *words, f"--secret={secret}"]) == 1
    assert not secret.exists()
