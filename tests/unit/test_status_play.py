"""status.yml's own steps: the exit code by health, the JSON document, several pairs in one run."""

from __future__ import annotations

import json
from pathlib import Path

from plays import play, role
from test_status_text import CONFIG, STATE, node

SERVING = {"spark-a": node(state=STATE, pair_config=CONFIG), "spark-b": node()}


def test_a_run_fails_for_the_pair_that_does_not_serve_alone(tmp_path: Path) -> None:
    report = tmp_path / "status.json"

    ran = play(tmp_path, [role("status")], SERVING, "-e", f"status_file={report}")

    assert ran.code == 2, ran.output
    assert "pair2: unreachable: head spark-c is unreachable from here" in ran.output
    assert "pair1: healthy: http://127.0.0.1:8888/v1" in ran.output
    recap = [line.split() for line in ran.output.splitlines() if "failed=1" in line]
    assert [line[0] for line in recap] == ["spark-c"]
    pairs = json.loads(report.read_text())
    assert [(one["pair"], one["health"], one["window"]) for one in pairs] == [
        ("pair1", "healthy", 1048576),
        ("pair2", "unreachable", None),
    ]


def test_a_pair_that_serves_is_no_failure_and_check_writes_nothing(tmp_path: Path) -> None:
    report = tmp_path / "status.json"

    words = ("--limit", "pair1", "--check", "-e", f"status_file={report}")
    ran = play(tmp_path, [role("status")], SERVING, *words)

    assert ran.code == 0, ran.output
    assert "rank 1   spark-b: running" in ran.output
    assert not report.exists()
