"""The engine's own parser judges a command line while the pair still serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.modules import engine_arguments
from fake_programs import Programs
from module_run import run_module

ARGS: dict[str, Any] = {
    "image": "engine@sha256:1",
    "parser": ["python3", "-c", "judge"],
    "arguments": ["serve", "--contxt", "9"],
}


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(tmp_path, monkeypatch, "docker")


def ask(capsys: pytest.CaptureFixture[str], check: bool = False) -> dict[str, Any]:
    return run_module(engine_arguments, capsys, check, **ARGS)


@pytest.mark.parametrize("check", [False, True])
def test_the_parser_runs_without_gpu_and_network(
    docker: Programs, capsys: pytest.CaptureFixture[str], check: bool
) -> None:
    answer = ask(capsys, check)
    assert (answer["failed"], answer["changed"]) == (False, False)
    (call,) = docker.calls
    assert call == (
        "docker run --rm --pull never --network none --entrypoint python3 engine@sha256:1 "
        "-c judge serve --contxt 9"
    )


def test_l11_a_typing_error_is_refused_and_nothing_was_changed(
    docker: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.answer("docker_run", "usage: tensorfold\nerror: unrecognized arguments: --contxt 9\n", 2)
    answer = ask(capsys)
    assert answer["failed"]
    assert answer["msg"] == (
        "the engine rejects these arguments: error: unrecognized arguments: --contxt 9; "
        "nothing was changed. Arguments: serve --contxt 9"
    )


@pytest.mark.parametrize("code", [125, 126, 127])
def test_a_check_that_could_not_run_blames_no_argument(
    docker: Programs, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    docker.answer("docker_run", "docker: Error response from daemon: no such image\n", code)
    answer = ask(capsys)
    assert answer["msg"] == (
        "the argument check could not run: docker: Error response from daemon: no such image"
    )


def test_no_docker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ask(capsys)["msg"].startswith("the argument check could not run: ")
