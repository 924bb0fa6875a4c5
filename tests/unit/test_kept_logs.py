"""What a rank printed is kept as a file when it ends, and only so many of them."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.agent import paths, verbs
from fake_node import PLAN, FakeNode

LINE = "2026-11-29T10:00:00.000001+00:00 twinserve-rank[7]: loading\n"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNode:
    """A node whose rank printed a line and ends now."""
    made = FakeNode(tmp_path, monkeypatch)
    made.answer("journalctl", LINE)
    made.plan({**PLAN, "rank": 1, "log_keep": 3})
    monkeypatch.setattr(paths, "LOGS", tmp_path / "log/twinserve")
    monkeypatch.setenv("INVOCATION_ID", "abc")
    monkeypatch.setenv("SERVICE_RESULT", "success")
    monkeypatch.setattr(time, "strftime", lambda *_: "20261129-100000")
    return made


def kept() -> list[str]:
    return sorted(path.name for path in paths.LOGS.glob("*")) if paths.LOGS.exists() else []


def test_o07_a_log_outlives_its_container(node: FakeNode) -> None:
    verbs.unit_clean()

    (path,) = paths.LOGS.glob("*")
    assert path.name == "20261129-100000-rank1.log.gz"
    assert gzip.decompress(path.read_bytes()).decode() == LINE
    assert [path.stat().st_mode & 0o777, paths.LOGS.stat().st_mode & 0o777] == [0o600, 0o700]
    assert "_SYSTEMD_INVOCATION_ID=abc" in node.calls[1], "this start's alone"
    assert node.calls[-1] == "docker rm -f glm53"


def test_before_a_start_there_is_no_log_to_wait_for(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERVICE_RESULT")  # as systemd has it in ExecStartPre
    verbs.unit_clean()

    assert node.calls == ["docker rm -f glm53"]


def test_o07_two_starts_that_end_within_a_second_have_a_file_each(node: FakeNode) -> None:
    verbs.unit_clean()
    verbs.unit_clean()

    assert kept() == ["20261129-100000-2-rank1.log.gz", "20261129-100000-rank1.log.gz"]


def test_o07_the_newest_are_kept(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    for second in range(5):
        monkeypatch.setattr(time, "strftime", lambda *_, now=second: f"20261129-10000{now}")
        verbs.unit_clean()

    assert kept() == [f"20261129-10000{second}-rank1.log.gz" for second in (2, 3, 4)]


def test_o07_nothing_is_kept_of_a_start_that_printed_nothing_or_on_request(node: FakeNode) -> None:
    node.answer("journalctl", "")
    verbs.unit_clean()
    node.answer("journalctl", LINE)
    node.plan({**PLAN, "rank": 1, "log_keep": 0})
    verbs.unit_clean()

    assert kept() == []


def test_o07_a_log_is_kept_too_when_the_plan_is_older_than_the_setting(
    node: FakeNode, capsys: pytest.CaptureFixture[str]
) -> None:
    node.plan({**PLAN, "rank": 1})
    verbs.unit_clean()

    assert (kept(), capsys.readouterr().err) == (["20261129-100000-rank1.log.gz"], "")


@pytest.mark.parametrize("call", ["journalctl_--sync", "journalctl"])
def test_o07_a_log_that_cannot_be_kept_is_told_and_the_rank_is_cleared_away(
    node: FakeNode, capsys: pytest.CaptureFixture[str], call: str
) -> None:
    node.answer("journalctl_--sync", "")
    node.answer(call, "No space left on device", 1)
    verbs.unit_clean()

    assert "the log of this start is not kept: journalctl" in capsys.readouterr().err
    assert (kept(), node.calls[-1]) == ([], "docker rm -f glm53")
