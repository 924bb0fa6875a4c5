"""The benchmark with the real AIPerf, from the head of a pair that serves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bench_setups import aiperf_wheels
from lab_pair import Lab, Play
from link_setups import shell
from under_way import one_line, running, wait_for

pytestmark = pytest.mark.slow  # AIPerf has a gigabyte

PLAY = "playbooks/bench.yml"
RUNS = "/var/lib/twinserve/benchmark/runs"


@pytest.fixture(scope="module")
def wheels(lab: Lab) -> Iterator[str]:
    """Where the hosts get AIPerf from."""
    with aiperf_wheels(lab) as page:
        yield page


@dataclass(frozen=True)
class Bench:
    """The benchmark of the pair, short enough for a test."""

    lab: Lab
    wheels: str
    reports: Path

    def words(self, *words: str) -> list[str]:
        given = (f"bench_wheels={self.wheels}", f"reports_to={self.reports}", "bench_requests=12", *words)
        return [PLAY, *(part for word in given for part in ("-e", word))]

    def play(self, *words: str) -> Play:
        return self.lab.play(*self.words(*words))

    @property
    def report(self) -> dict[str, Any]:
        (path,) = self.reports.glob("*/report.json")
        return dict(json.loads(path.read_text()))

    def kept(self) -> dict[int, dict[str, Any]]:
        """What the head has of measurements, by concurrency. AIPerf, beside them, may be just removed."""
        look = f"[ ! -d {RUNS} ] || find {RUNS} -name result.json -exec cat {{}} +"
        text = shell(self.lab, self.lab.hosts[0], look)
        found = [json.loads(line) for line in text.splitlines()]
        return {one["concurrency"]: one for one in found}

    def works(self) -> bool:
        state = shell(self.lab, self.lab.hosts[0], f"systemctl show -P SubState '{self.job}'")
        return state.strip() == "running"

    @property
    def job(self) -> str:
        return f"twinserve-job-benchmark-{self.lab.name}-pair.service"


@pytest.fixture
def bench(lab: Lab, converged: Play, wheels: str, tmp_path: Path) -> Iterator[Bench]:
    """A pair that serves, of which nothing has been measured."""
    lab.play("site.yml").succeeded()
    shell(lab, lab.hosts[0], f"rm -rf {RUNS}")
    yield Bench(lab, wheels, tmp_path / "reports")
    shell(lab, lab.hosts[0], f"rm -rf {RUNS}")


def test_a_sweep_outlives_its_controller_and_goes_on_where_it_was_ended(bench: Bench) -> None:
    head = bench.lab.hosts[0]
    containers = bench.lab.containers()
    with running(bench.lab, *bench.words("bench_concurrency=1,4")) as play:
        wait_for(lambda: 1 in bench.kept(), 600)
        play.kill()
    assert bench.works()
    shell(bench.lab, head, f"systemctl stop {bench.job}")
    assert "aiperf" not in shell(bench.lab, head, "ps -eo args")
    first = bench.kept()[1]

    ran = bench.play("bench_concurrency=1,4", "bench_note='As measured in a test'").succeeded()
    assert "measured already, and not again: concurrency 1" in one_line(ran.output)
    assert bench.kept()[1] == first
    report = bench.report
    assert [one["concurrency"] for one in report["levels"]] == [1, 4]
    assert {one["requests"] for one in report["levels"]} == {12}
    assert {one["others"] for one in report["levels"]} == {0}
    fastest = max(report["levels"], key=lambda one: one["throughput"])
    assert report["peak"] == {name: fastest[name] for name in ("concurrency", "throughput")}
    (folder,) = bench.reports.iterdir()
    assert (folder / "report.png").read_bytes().startswith(b"\x89PNG")
    assert "As measured in a test" in (folder / "report.md").read_text()
    assert "not SPEED-Bench" in (folder / "report.md").read_text()
    owners = shell(bench.lab, head, f"stat -c %U {RUNS}/*/concurrency-0004/aiperf/profile_export_aiperf.json")
    assert owners.strip() == "nvidia"
    assert bench.lab.containers() == containers


def test_speed_bench_is_measured_from_a_prepared_file(bench: Bench, tmp_path: Path) -> None:
    rows = [
        {
            "question_id": f"{number:032x}",
            "category": "coding" if number < 80 else "math",
            "messages": [{"role": "user", "content": f"Task {number}: write a function"}],
        }
        for number in range(90)
    ]
    file = tmp_path / "qualitative.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    bench.play(f"bench_dataset={file}", "bench_requests=80", "bench_concurrency=4").succeeded()
    assert bench.report["dataset"]["name"] == "SPEED-Bench coding"
    assert [one["requests"] for one in bench.report["levels"]] == [80]


def test_a_pair_that_serves_others_is_left_alone(bench: Bench) -> None:
    head = bench.lab.hosts[0]
    body = json.dumps({"messages": [{"role": "user", "content": "Count."}], "max_tokens": 16})
    ask = f"curl -sS -o /dev/null -H 'Content-Type: application/json' -d '{body}' http://127.0.0.1:18888/v1/chat/completions"
    loop = f"while :; do {ask}; sleep 0.2; done"
    shell(
        bench.lab,
        head,
        f'systemd-run --quiet --unit=somebody sh -c "{loop.replace(chr(34), chr(92) + chr(34))}"',
    )
    try:
        said = one_line(bench.play("bench_concurrency=1").refused().output)
    finally:
        shell(bench.lab, head, "systemctl stop somebody")
    assert "requests of others" in said
    assert "bench_while_busy=true" in said
    assert bench.kept() == {}


def test_check_mode_names_the_sweep_and_leaves_nothing(bench: Bench) -> None:
    ran = bench.lab.play(*bench.words("bench_concurrency=1,8"), "--check").succeeded()
    assert "concurrency 1, 8: 12 requests each" in ran.output
    assert shell(bench.lab, bench.lab.hosts[0], "find /var/lib/twinserve -name plan.json") == ""
    assert not bench.reports.exists()


def test_another_machine_needs_a_way_to_the_api(bench: Bench) -> None:
    worker = bench.lab.hosts[1]
    said = one_line(bench.play(f"bench_host={worker}").refused().output)
    assert "the API listens on the head's loopback only" in said
