"""A change that does not come up is taken back, an interrupted one is finished, requests are respected."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from lab_pair import ROOT, Lab, Play

SERVED = "http://127.0.0.1:8888/v1/chat/completions"


def command(lab: Lab, host: str) -> list[str]:
    """The engine's command line in the running container."""
    words: list[str] = lab.inspect(host)["Config"]["Cmd"]
    return words


def parallel(lab: Lab) -> list[str]:
    """How many requests each rank was started for."""
    lines = [command(lab, host) for host in lab.hosts]
    return [words[words.index("--parallel") + 1] for words in lines]


def state(lab: Lab) -> dict[str, Any]:
    """What the supervisor says."""
    found: dict[str, Any] = json.loads(lab.root(lab.hosts[0], "cat", "/run/twinserve/state.json"))
    return found


def kept(lab: Lab, host: str) -> list[str]:
    """Ids of the configurations that a host keeps, the last one first."""
    root = "/var/lib/twinserve/good"
    found = lab.root(
        host, "sh", "-c", f"cat {root}/current/about.json; echo ,; cat {root}/previous/about.json"
    )
    return [one["id"] for one in json.loads(f"[{found}]")]


def wait_for(what: Callable[[], bool], seconds: float = 120) -> None:
    """Until it is so; the bound only ends a test that would hang."""
    limit = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < limit, "it did not come to be"
        time.sleep(1)


def words_of(run: Play) -> str:
    """A run's output without its line breaks."""
    return " ".join(run.output.split())


@pytest.fixture(autouse=True)
def _without_faults(lab: Lab, converged: Play) -> Iterator[None]:
    """Leave the engine well, and the pair as site.yml made it."""
    yield
    for host in lab.hosts:
        lab.verb("engine", host, "--clear")
    lab.play("serve.yml").succeeded()


def test_a_configuration_that_does_not_come_up_goes_back_to_the_last_good_one(lab: Lab) -> None:
    before = kept(lab, lab.hosts[0])
    # As many starts as a pair gets within an hour; what comes back is another configuration.
    fault = {"message": "RuntimeError: no kernel for this", "times": 4}
    lab.verb("engine", lab.hosts[1], f"crash_at_start={json.dumps(fault)}")

    run = lab.play("serve.yml", "-e", "parallel=2").refused()

    said = words_of(run)
    assert "the new configuration failed: the pair is down: gave up after 3 restarts" in said
    assert "no kernel for this" in said
    assert "The last good one serves again: release" in said
    assert parallel(lab) == ["4", "4"]
    assert state(lab)["state"] == "serving"
    assert "OK" in lab.chat("Reply with OK.")
    assert lab.node(lab.hosts[0]).service("twinserve").is_enabled
    assert kept(lab, lab.hosts[0]) == before
    again = lab.play("serve.yml").succeeded()
    assert again.changed == 0


def test_an_api_that_comes_up_wrong_is_no_good_configuration(lab: Lab) -> None:
    lab.verb("engine", lab.hosts[0], "collapsed_reply=true")

    run = lab.play("serve.yml", "-e", "parallel=3").refused()

    said = words_of(run)
    assert "collapsed output" in said
    # The fault is the engine's: the last good one has it too, and both are said.
    assert "did not come back either" in said
    assert state(lab)["state"] == "down"


def test_a_restart_that_fails_has_nothing_to_go_back_to(lab: Lab) -> None:
    lab.verb("engine", lab.hosts[1], "crash_at_start=true")

    run = lab.play("serve.yml", "-e", "restart=true").refused()

    assert "This is the last good configuration itself: none to go back to" in words_of(run)
    assert state(lab)["state"] == "down"


def test_l11_a_refused_argument_neither_stops_nor_goes_back(lab: Lab) -> None:
    before = lab.containers()

    run = lab.play("serve.yml", "-e", '{"extra_args": ["--contxt", "4096"]}').refused()

    assert "nothing was changed" in run.output
    assert "The last good one" not in run.output
    assert lab.containers() == before


def test_rollback_goes_to_the_configuration_before_and_forth(lab: Lab) -> None:
    lab.play("serve.yml", "-e", "parallel=2").succeeded()
    two, four = kept(lab, lab.hosts[0])
    assert kept(lab, lab.hosts[1]) == [two, four]

    predicted = lab.play("playbooks/rollback.yml", "--check", "--diff").succeeded()
    assert '+    "4"' in predicted.output
    assert parallel(lab) == ["2", "2"]

    run = lab.play("playbooks/rollback.yml").succeeded()

    assert f"({four})" in words_of(run)
    assert parallel(lab) == ["4", "4"]
    assert "OK" in lab.chat("Reply with OK.")
    assert kept(lab, lab.hosts[0]) == kept(lab, lab.hosts[1]) == [four, two]
    lab.play("playbooks/rollback.yml").succeeded()
    assert parallel(lab) == ["2", "2"]
    lab.play("playbooks/rollback.yml", "-e", "context=nonsense").succeeded()
    assert parallel(lab) == ["4", "4"]


@pytest.mark.parametrize("task", ["Write the files of the node", "Start the pair and wait until it serves"])
def test_a_controller_that_is_killed_in_the_middle_leaves_nothing_that_the_next_run_does_not_end(
    lab: Lab, task: str
) -> None:
    lab.play("serve.yml").succeeded()
    argv = [
        str(ROOT / ".venv/bin/ansible-playbook"),
        "-i",
        str(lab.inventory),
        "serve.yml",
        "-e",
        "parallel=2",
    ]
    run = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert run.stdout
    for line in run.stdout:
        if f"TASK [serve : {task}]" in line:
            break
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()

    lab.play("serve.yml", "-e", "parallel=2").succeeded()

    assert parallel(lab) == ["2", "2"]
    assert "OK" in lab.chat("Reply with OK.")
    assert kept(lab, lab.hosts[0])[0] == kept(lab, lab.hosts[1])[0]


def ask_slowly(lab: Lab, tokens: int) -> subprocess.Popen[str]:
    """A request that takes a while, under way."""
    body = {
        "model": "GLM-5.3-Flash-EXL3",
        "max_tokens": tokens,
        "messages": [{"role": "user", "content": "x " * 900}],
    }
    argv = [
        "curl",
        "-sS",
        "-m",
        "120",
        "-H",
        "Content-Type: application/json",
        "-d",
        json.dumps(body),
        SERVED,
    ]
    lab_argv = [str(ROOT / "lab/lab"), "exec", "--name", lab.name, lab.hosts[0], *argv]
    asked = subprocess.Popen(lab_argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_for(lambda: lab.get("/health")["requests_running"] > 0)
    return asked


def test_running_requests_end_before_the_pair_is_stopped(lab: Lab) -> None:
    lab.play("serve.yml", "-e", "drain_timeout=120").succeeded()
    lab.verb("engine", lab.hosts[0], "decode_tokens_per_s=10")
    asked = ask_slowly(lab, 900)

    run = lab.play("serve.yml", "-e", "drain_timeout=120", "-e", "parallel=2").succeeded()

    answer = json.loads(asked.communicate()[0])
    assert answer["choices"][0]["message"]["content"]
    assert "cut off" not in run.output
    assert parallel(lab) == ["2", "2"]


def test_what_does_not_end_in_time_is_cut_off_and_counted(lab: Lab) -> None:
    lab.play("serve.yml", "-e", "drain_timeout=2").succeeded()
    lab.verb("engine", lab.hosts[0], "decode_tokens_per_s=2")
    asked = ask_slowly(lab, 900)

    run = lab.play("serve.yml", "-e", "drain_timeout=2", "-e", "parallel=2").succeeded()

    asked.communicate()
    assert "1 running request was cut off by the stop" in words_of(run)
    assert parallel(lab) == ["2", "2"]


def test_k12_a_setting_that_was_taken_away_returns_to_its_default(lab: Lab) -> None:
    text = "a  'b' \"c\" $HOME \\d ; {e}"
    said = {"served_name": "mine", "engine_env": {"MY_TEXT": text}, "extra_args": ["--max-tokens", "16384"]}
    lab.play("serve.yml", "-e", json.dumps(said)).succeeded()
    for host in lab.hosts:
        assert f"MY_TEXT={text}" in lab.inspect(host)["Config"]["Env"]
        assert command(lab, host)[-2:] == ["--max-tokens", "16384"]
    assert lab.get("/v1/models")["data"][0]["id"] == "mine"

    run = lab.play("serve.yml", "--diff").succeeded()

    assert [line for line in run.output.splitlines() if line.startswith("-") and "MY_TEXT" in line]
    assert lab.get("/v1/models")["data"][0]["id"] == "GLM-5.3-Flash-EXL3"
    for host in lab.hosts:
        assert not [one for one in lab.inspect(host)["Config"]["Env"] if one.startswith("MY_TEXT=")]
        assert "16384" not in command(lab, host)
