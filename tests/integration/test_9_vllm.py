"""The second engine, for real: vLLM on CPUs serves a small model on two Stations, as the playbooks deploy it.

It fails in other ways than the simulated engine: /health stays 200 without the worker, and requests hang.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench_setups import aiperf_wheels
from conftest import NAME
from faults import beside, settled, state, switched_on, wait_for
from lab_pair import ROOT, Lab, Play
from link_setups import said

pytestmark = pytest.mark.real_engine
API = "http://127.0.0.1:18000"
MODEL = "lab/SmolLM2-135M-Instruct"
CONTAINER = "glm53-full"
FRANCE = "What is the capital of France?"
QUESTIONS = (FRANCE, "Count from one to ten.", "Write a haiku about the sea.")
START = 900  # seconds; two cores load both ranks in two to four minutes
# One of each kind: a token takes these ranks a third of a second.
PROMISES = (
    *("models", "health", "metrics", "chat", "chat_stream", "completions", "responses"),
    *("round_trip_tokenize", "form_json_schema", "form_guided_choice", "tool_choice_required"),
    "context_length_exceeded",
)
ALONE = """
import json, sys
from vllm import LLM, SamplingParams
if __name__ == "__main__":
    llm = LLM(sys.argv[1], enforce_eager=True, max_model_len=2048, max_num_seqs=4, block_size=128)
    asked = [[{"role": "user", "content": question}] for question in sys.argv[2:]]
    told = llm.chat(asked, SamplingParams(temperature=0, max_tokens=32), use_tqdm=False)
    print("TOLD", json.dumps([one.outputs[0].text for one in told]))
"""


@pytest.fixture(scope="module")
def deployed(request: pytest.FixtureRequest) -> Iterator[tuple[Lab, Play]]:
    """Two bare Stations, and what the first site.yml said; skipped where the engine cannot be had."""
    keep = request.config.getoption("--keep-lab")
    name = NAME if keep else f"{NAME[:8]}v"
    lab = Lab(name, Path(os.environ.get("TWINSERVE_LAB", ROOT / ".lab")) / name)
    if not keep:
        lab.verb("down", "--wipe")
    up = [str(ROOT / "lab/lab"), "up", "--name", name, "--engine", "vllm"]
    done = subprocess.run(up, capture_output=True, text=True, check=False)
    if done.returncode == 3 and "vLLM's build for CPUs needs" in done.stderr:
        lab.verb("down", "--wipe")
        pytest.skip(f"the real engine cannot be had: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    yield lab, lab.play("site.yml").succeeded()
    if not keep:
        lab.verb("down", "--wipe")


@pytest.fixture
def pair(deployed: tuple[Lab, Play]) -> Lab:
    """The pair, serving."""
    lab, _ = deployed
    wait_for(lambda: bool(state(lab)["state"] == "serving"), lab, START)
    return lab


@pytest.fixture
def watched(pair: Lab) -> Lab:
    """The same, which may die more often than a real one in an hour."""
    settled(pair, restart_limit=100)
    return pair


def request(question: str, **more: Any) -> list[str]:
    """The words of curl for a chat request."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": question}], "temperature": 0}
    data = json.dumps({**body, "max_tokens": 32, **more})
    return [
        "curl",
        "-sS",
        "-m",
        "300",
        "-H",
        "Content-Type: application/json",
        "-d",
        data,
        f"{API}/v1/chat/completions",
    ]


def answer(lab: Lab, question: str) -> dict[str, Any]:
    """What the API says to a question, asked on the head."""
    told: dict[str, Any] = json.loads(lab.root(lab.hosts[0], *request(question)))
    return told


def content(told: dict[str, Any]) -> str:
    """The text of a reply."""
    return str(told["choices"][0]["message"]["content"])


def containers(lab: Lab) -> set[str]:
    """The ids of both ranks' containers, as far as they run."""
    asked = ("docker", "ps", "--quiet", "--no-trunc", "--filter", f"name={CONTAINER}")
    return {lab.root(host, *asked).strip() for host in lab.hosts} - {""}


def first(lab: Lab, host: str, action: str) -> int:
    """When Docker first did that to the rank's container, the last one, in nanoseconds."""
    asked = ("docker", "events", "--since", "1h", "--until", "0s", "--filter", f"container={CONTAINER}")
    told = lab.root(host, *asked, "--format", "{{.TimeNano}} {{.Action}}").split("\n")
    events = [line.split(" ", 1) for line in told if line]
    start = max(number for number, (_, name) in enumerate(events) if name == "start")
    return next(int(time) for time, name in events[start:] if name == action)


def came_back(lab: Lab, before: set[str]) -> None:
    """Wait until new ranks serve, both; the first answer is right."""

    def serve_anew() -> bool:
        # In this order: the state alone may be that of the moment before the supervisor saw what happened.
        ranks = containers(lab)
        return len(ranks) == len(lab.hosts) and not ranks & before and state(lab)["state"] == "serving"

    wait_for(serve_anew, lab, START)
    assert "Paris" in content(answer(lab, FRANCE))


def test_the_playbooks_deploy_two_ranks_that_answer(deployed: tuple[Lab, Play]) -> None:
    lab, run = deployed

    assert f"serves {MODEL} at https://" in said(run.output)
    told = answer(lab, FRANCE)
    assert content(told) == "The capital of France is Paris."
    assert "-tp2-" in told["system_fingerprint"]
    for rank, host in enumerate(lab.hosts):
        log = lab.root(host, "sh", "-c", f"docker logs {CONTAINER} 2>&1")
        assert f"rank {rank} in world size 2 is assigned as DP rank 0, PP rank 0" in log
        assert f"master_addr=192.168.177.1, mq_connect_ip=192.168.177.{rank + 1}" in log or rank == 1


def test_a_second_run_changes_nothing(pair: Lab) -> None:
    before = containers(pair)

    assert pair.play("site.yml").succeeded().changed == 0
    assert containers(pair) == before


def test_two_ranks_say_what_one_says(pair: Lab) -> None:
    rank = json.loads(pair.root(pair.hosts[1], "cat", "/etc/twinserve/rank.json"))
    env = [word for key, value in rank["env"].items() for word in ("--env", f"{key}={value}")]
    mounts = [word for one in rank["mounts"] for word in ("--volume", f"{one['source']}:{one['target']}:ro")]
    run = ["docker", "run", "--rm", "--network", "none", "--shm-size", "1g", *env, *mounts]
    program = ["python3", "-c", ALONE, rank["command"][2], *QUESTIONS]
    alone = pair.root(pair.hosts[1], *run, "--env", "VLLM_HOST_IP=127.0.0.1", rank["image"], *program)
    told = next(line for line in alone.splitlines() if line.startswith("TOLD "))

    assert [content(answer(pair, one)) for one in QUESTIONS] == json.loads(told.removeprefix("TOLD "))


def test_the_api_keeps_its_promises(pair: Lab) -> None:
    run = pair.play("playbooks/verify.yml", "-e", f"only={','.join(PROMISES)}").succeeded()

    assert f"{len(PROMISES)} of {len(PROMISES)} checks passed" in said(run.output)


@pytest.mark.slow
def test_the_api_keeps_all_of_its_promises(pair: Lab) -> None:
    pair.play("playbooks/verify.yml").succeeded()


@pytest.mark.slow
def test_the_benchmark_measures_it(pair: Lab, tmp_path: Path) -> None:
    with aiperf_wheels(pair) as page:
        given = (f"bench_wheels={page}", f"reports_to={tmp_path}", "bench_requests=4", "bench_max_tokens=16")
        words = [part for word in (*given, "bench_concurrency=1,4") for part in ("-e", word)]
        pair.play("playbooks/bench.yml", *words).succeeded()

    (report,) = tmp_path.glob("*/report.json")
    levels = json.loads(report.read_text())["levels"]
    assert [one["concurrency"] for one in levels] == [1, 4]
    assert levels[1]["throughput"] > levels[0]["throughput"] > 0


def test_a_worker_that_is_killed_while_nobody_asks(pair: Lab) -> None:
    before = containers(pair)
    pair.root(pair.hosts[1], "docker", "kill", CONTAINER)

    came_back(pair, before)
    assert "rank 1 exited (code 137)" in state(pair)["last_error"]


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle_of_a_reply(watched: Lab) -> None:
    before = containers(watched)
    asked = request("Tell me a long story.", max_tokens=400, stream=True)
    with beside(watched, *asked, "-N") as stream:
        first = [stream.stdout.readline() for _ in range(9)] if stream.stdout else []
        watched.root(watched.hosts[1], "docker", "kill", CONTAINER)
        rest = stream.communicate(timeout=120)[0]

    assert any('"content"' in line for line in first)
    assert "[DONE]" not in "".join(first)
    assert '"error"' in rest or "curl:" in rest, "a reply that was cut says so"
    came_back(watched, before)


@pytest.mark.slow
def test_the_only_cable_is_pulled_while_a_request_runs(watched: Lab) -> None:
    before = containers(watched)
    with beside(watched, *request("Tell me a long story.", max_tokens=400)):
        watched.verb("cut-rail", "1")
        wait_for(lambda: bool(state(watched)["state"] != "serving"), watched, 300)
    watched.verb("mend-rail", "1")

    came_back(watched, before)


@pytest.mark.slow
def test_the_power_of_both_goes_and_the_worker_comes_back_last(watched: Lab) -> None:
    before = containers(watched)
    for host in watched.hosts:
        watched.verb("power-cut", host)
    switched_on(watched, *watched.hosts)

    came_back(watched, before)


def test_it_stops_in_its_order_and_stays_stopped(pair: Lab) -> None:
    pair.play("playbooks/stop.yml").succeeded()

    assert containers(pair) == set()
    assert first(pair, pair.hosts[0], "die") <= first(pair, pair.hosts[1], "kill")
    assert "stopped: site.yml starts it" in pair.play("playbooks/status.yml").refused().output
