"""A change that does not come up is taken back, an interrupted one is finished, requests are respected."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from lab_pair import ROOT, Lab, Play

SERVED = "http://127.0.0.1:18888/v1/chat/completions"


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
    script = "cd /var/lib/twinserve/good && for one in current previous; do [ ! -d $one ] || echo $one; done"
    folders = lab.root(host, "sh", "-c", script).split()
    abouts = [lab.root(host, "cat", f"/var/lib/twinserve/good/{one}/about.json") for one in folders]
    return [json.loads(about)["id"] for about in abouts]


def wait_for(what: Callable[[], bool], seconds: float = 300) -> None:
    """Until it is so; the bound only ends a test that would hang."""
    limit = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < limit, "it did not come to be"
        time.sleep(1)


def words_of(run: Play) -> str:
    """A run's output without its line breaks."""
    return " ".join(run.output.split())


@pytest.fixture(scope="module", autouse=True)
def _defaults_again(lab: Lab, converged: Play) -> Iterator[None]:
    """Leave the pair as site.yml made it."""
    yield
    lab.play("serve.yml").succeeded()


@pytest.fixture(autouse=True)
def _well_again(lab: Lab) -> Iterator[None]:
    """Leave the engine without faults."""
    yield
    for host in lab.hosts:
        lab.verb("engine", host, "--clear")


def test_a_configuration_that_does_not_come_up_goes_back_to_the_last_good_one(lab: Lab) -> None:
    before = kept(lab, lab.hosts[0])
    # One start, since another one with these plans would end the same way; what comes back are others.
    refusal = "the two ranks were started with different settings"
    fault = {"message": refusal, "times": 1}
    lab.verb("engine", lab.hosts[1], f"crash_at_start={json.dumps(fault)}")

    run = lab.play("serve.yml", "-e", "parallel=2").refused()

    said = words_of(run)
    assert "the new configuration failed: the pair is down: rank 1 exited (code 1)" in said
    assert f"rank 1: RuntimeError: {refusal}" in said
    assert "The last good one serves again: release" in said
    assert parallel(lab) == ["4", "4"]
    assert state(lab)["state"] == "serving"
    assert "OK" in lab.chat("Reply with OK.")
    assert lab.node(lab.hosts[0]).service("twinserve").is_enabled
    assert kept(lab, lab.hosts[0]) == before
    again = lab.play("serve.yml").succeeded()
    assert again.changed == 0


def test_a_node_that_cannot_take_the_runtime_stops_no_pair(lab: Lab) -> None:
    folder = "/usr/local/lib/twinserve"
    head, worker = lab.hosts
    new = lab.root(head, "readlink", f"{folder}/current").strip()
    # As after an update of the controller: what runs and is kept is an older runtime, on both.
    for host in lab.hosts:
        lab.root(host, "cp", "-a", f"{folder}/{new}", f"{folder}/older")
        lab.root(host, "ln", "-sfn", "older", f"{folder}/current")
        lab.root(host, "sed", "-i", f"s/{new}/older/", "/var/lib/twinserve/good/current/about.json")
    lab.root(head, "systemctl", "reload", "twinserve")
    wait_for(lambda: (state(lab)["runtime"], state(lab)["state"]) == ("older", "serving"))
    lab.root(worker, "rm", "-r", f"{folder}/{new}")
    lab.root(worker, "touch", f"{folder}/{new}")
    before = lab.containers()

    run = lab.play("serve.yml", "-e", "parallel=2").refused()

    said = words_of(run)
    assert "the pair was not stopped, since a node was not ready for the change" in said
    assert "The last good one serves: release" in said
    assert lab.containers() == before
    assert (state(lab)["state"], parallel(lab)) == ("serving", ["4", "4"])
    for host in lab.hosts:
        assert lab.root(host, "readlink", f"{folder}/current").strip() == "older"

    lab.root(worker, "rm", f"{folder}/{new}")
    lab.play("serve.yml").succeeded()
    assert lab.containers() == before
    assert state(lab)["runtime"] == new


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

    assert "This is the last good configuration: none to go back to" in words_of(run)
    assert state(lab)["state"] == "down"


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


def start_play(lab: Lab, *words: str) -> subprocess.Popen[str]:
    """A run of serve.yml that goes on by itself, as the leader of its processes."""
    argv = [str(ROOT / ".venv/bin/ansible-playbook"), "-i", str(lab.inventory), "serve.yml", *words]
    return subprocess.Popen(
        argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


@pytest.mark.parametrize(
    ("task", "wanted"),
    [("Write the files of the node", "2"), ("Start the pair and wait until it serves", "3")],
)
def test_a_controller_that_is_killed_in_the_middle_leaves_nothing_that_the_next_run_does_not_end(
    lab: Lab, task: str, wanted: str
) -> None:
    run = start_play(lab, "-e", f"parallel={wanted}")
    assert run.stdout
    seen = next((line for line in run.stdout if f"TASK [serve : {task}]" in line), None)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    assert seen

    lab.play("serve.yml", "-e", f"parallel={wanted}").succeeded()

    assert parallel(lab) == [wanted, wanted]
    assert "OK" in lab.chat("Reply with OK.")
    assert kept(lab, lab.hosts[0])[0] == kept(lab, lab.hosts[1])[0]


def ask_slowly(lab: Lab, pace: float) -> subprocess.Popen[str]:
    """A request under way, whose reply of some 70 tokens comes at this pace, in tokens a second."""
    lab.verb("engine", lab.hosts[0], f"decode_tokens_per_s={pace}")
    story = {"role": "user", "content": "Tell me a story."}
    body = {"model": "GLM-5.3-Flash-EXL3", "messages": [story]}
    curl = [
        "curl",
        "-sS",
        "-m",
        "900",
        "-H",
        "Content-Type: application/json",
        "-d",
        json.dumps(body),
        SERVED,
    ]
    argv = [str(ROOT / "lab/lab"), "exec", "--name", lab.name, lab.hosts[0], *curl]
    asked = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_for(lambda: lab.get("/health")["requests_running"] > 0)
    return asked


def test_running_requests_end_before_the_pair_is_stopped_and_meanwhile_nobody_else_changes_it(
    lab: Lab,
) -> None:
    lab.play("serve.yml", "-e", "drain_timeout=600").succeeded()
    asked = ask_slowly(lab, 0.3)
    before = lab.containers()
    run = start_play(lab, "-e", "drain_timeout=600", "-e", "parallel=2")
    wait_for(lambda: "waiting for 1 request to end before the stop" in state(lab)["detail"])
    for words in (["serve.yml", "-e", "parallel=3"], ["playbooks/stop.yml"]):
        said = words_of(lab.play(*words).refused())
        holder = rf"serve.yml by \S+@\S+ \(pid {run.pid}, since [^)]+\)"
        assert re.search(rf"{holder} is changing this pair: run this again when that has ended", said), said
        assert f"{lab.hosts[1]} was left as it is: {lab.hosts[0]} says why" in said
    assert lab.containers() == before
    lab.verb("engine", lab.hosts[0], "--clear")
    answer = json.loads(asked.communicate()[0])

    assert answer["choices"][0]["message"]["content"]
    output = run.communicate()[0]
    assert run.returncode == 0, output
    assert "cut off" not in output
    assert parallel(lab) == ["2", "2"]


def test_what_does_not_end_in_time_is_cut_off_and_counted(lab: Lab) -> None:
    lab.play("serve.yml", "-e", "drain_timeout=2", "-e", "parallel=2").succeeded()
    asked = ask_slowly(lab, 0.1)
    run = start_play(lab, "-e", "drain_timeout=2", "-e", "parallel=3")
    asked.communicate()

    # Else the first reply of the new start would take for ever, too.
    lab.verb("engine", lab.hosts[0], "--clear")

    output = run.communicate()[0]
    assert run.returncode == 0, output
    assert "1 running request was cut off by the stop" in " ".join(output.split())
    assert parallel(lab) == ["3", "3"]


@pytest.mark.slow
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


@pytest.mark.slow
def test_l16_the_guard_makes_room_while_weights_load_and_then_ends(lab: Lab) -> None:
    """On the worker alone files have nearly all of the memory."""
    head, worker = lab.hosts
    orders = ("/proc/sys/vm/drop_caches", "/proc/sys/vm/compact_memory")
    for host in lab.hosts:
        lab.root(host, "sh", "-c", f"echo 0 | tee {' '.join(orders)}")
    lab.verb("memory", worker, "115", "--files", "110")
    lab.verb("engine", worker, "load_seconds=12")
    try:
        lab.play("serve.yml", "-e", "load_guard=true", "-e", "restart=true").succeeded()
    finally:
        lab.verb("memory", worker, "115")

    # The head, which has room, only forgets files before its start.
    assert [lab.root(worker, "cat", order).strip() for order in orders] == ["3", "1"]
    assert [lab.root(head, "cat", order).strip() for order in orders] == ["3", "0"]
    time.sleep(6)  # it rests before it ends
    assert not lab.node(worker).service("twinserve-guard").is_running
    assert not state(lab)["warnings"]
