"""The forced command: exact verbs and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.control import agent_argv

AGENT = ["sudo", "-n", "/usr/local/sbin/twinserve-rank"]
COLLECTIONS = Path(__file__).resolve().parents[2] / "collections"
MODULE = "ansible_collections.twinserve.pair.plugins.module_utils.control"


@pytest.mark.parametrize("verb", ["report", "start", "stop", "kill", "state", "reach"])
def test_plain_verbs(verb: str) -> None:
    assert agent_argv(verb) == [*AGENT, verb]


def test_a_rank_that_loads_is_watched_more_closely() -> None:
    assert agent_argv("state loading") == [*AGENT, "state", "loading"]


def test_logs_takes_a_number() -> None:
    assert agent_argv("logs 25") == [*AGENT, "logs", "25"]


@pytest.mark.parametrize(
    "command",
    [
        "",
        "run",
        "unit-stop",
        "State",
        " state",
        "state ",
        "state serving",
        "state loading ",
        "start loading",
        "state\n",
        "state; id",
        "start --force",
        "logs",
        "logs -1",
        "logs 25 26",
        "logs 1e3",
        "logs 123456",
        "logs ２５",
        "logs $(id)",
        "/bin/sh",
        "rsync --server .",
        "scp -t /tmp",
    ],
)
def test_everything_else_is_refused(command: str) -> None:
    assert agent_argv(command) is None


@pytest.mark.parametrize("command", ["id", None])
def test_refusal_is_exit_code_126(command: str | None) -> None:
    environ = {**os.environ, "PYTHONPATH": str(COLLECTIONS)}
    environ.pop("SSH_ORIGINAL_COMMAND", None)
    if command is not None:
        environ["SSH_ORIGINAL_COMMAND"] = command
    done = subprocess.run(
        [sys.executable, "-m", MODULE], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 126
    assert "only report, start" in done.stderr
