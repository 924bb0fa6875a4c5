"""The agent as a program: its words, its errors, its exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.agent.__main__ import main
from fake_node import LINK, FakeNode


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNode:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return FakeNode(tmp_path, monkeypatch)


@pytest.mark.parametrize("argv", [[], ["status"], ["logs"], ["logs", "all"], ["state", "now"]])
def test_unknown_words_are_an_error(
    node: FakeNode, argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 1
    assert "usage: twinserve-rank" in json.loads(capsys.readouterr().out)["error"]


def test_needs_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["state"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "error": "twinserve-rank needs root: sudo twinserve-rank VERB"
    }


def test_answers_are_json_and_logs_are_text(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    node.answer("journalctl", "one\ntwo\n")
    assert main(["state"]) == 0
    assert json.loads(capsys.readouterr().out)["log"] == ["one", "two"]
    assert main(["logs", "2"]) == 0
    assert capsys.readouterr().out == "one\ntwo\n"


def test_program_failures_are_one_line(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    node.answer("systemctl_show", "System has not been booted with systemd\n", 1)
    assert main(["state"]) == 1
    assert "not been booted" in json.loads(capsys.readouterr().out)["error"]


def test_run_becomes_docker_run(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[list[str]] = []
    monkeypatch.setattr(os, "execvp", lambda _program, argv: became.append(argv))
    (node.folder / "run").mkdir()
    (node.folder / "run/link.json").write_text(json.dumps(LINK))
    assert main(["run"]) == 0
    assert became[0][:7] == ["docker", "run", "--rm", "--pull", "never", "--name", "glm53"]
    assert became[0][-2:] == ["--master", "198.51.100.1"]


def test_run_without_a_link_says_how_to_start(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run"]) == 1
    assert "systemctl start twinserve" in json.loads(capsys.readouterr().out)["error"]
