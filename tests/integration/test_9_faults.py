"""What breaks while the pair serves, and how it comes back by itself: the table of docs/faults.md.

Each run writes the table with its own times to build/faults.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from conftest import NAME
from faults import Table, back, beside, lines, settled, state, switched_on, wait_for
from lab_pair import Lab
from link_setups import own_lab

pytestmark = pytest.mark.slow
ENGINE = "glm53-flash-tf"
# More deaths than a real pair may have in an hour.
MANY = {"restart_limit": 100}
CHAT = "http://127.0.0.1:18888/v1/chat/completions"


@pytest.fixture(scope="module")
def serving(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A pair of its own that serves; with --keep-lab the one that is up and serves."""
    if request.config.getoption("--keep-lab"):
        yield request.getfixturevalue("lab")
        return
    with own_lab(NAME, mark="f") as own:
        own.play("site.yml").succeeded()
        yield own


@pytest.fixture(scope="module")
def table() -> Table:
    """What this run has measured so far."""
    return Table()


@pytest.fixture
def pair(serving: Lab) -> Iterator[Lab]:
    """The pair, serving with both rails and watched as usual."""
    settled(serving, **MANY, canary_interval=60, hang_limit=1800)
    yield serving
    for host in serving.hosts:
        serving.verb("engine", host, "--clear")


def kill_docker(lab: Lab, host: str) -> None:
    lab.root(host, "systemctl", "kill", "--kill-whom=main", "--signal=KILL", "docker")


@pytest.mark.parametrize("rank", [0, 1])
def test_o01_a_rank_that_is_killed(pair: Lab, table: Table, rank: int) -> None:
    before, at = pair.containers(), time.time()
    pair.root(pair.hosts[rank], "docker", "kill", ENGINE)

    table.add(f"rank {rank} killed", "both ranks start again", back(pair, at))

    assert not set(before.values()) & set(pair.containers().values())
    # The other one ends of it, and may be seen first.
    assert "exited (code" in state(pair)["last_error"]


@pytest.mark.parametrize("rank", [0, 1])
def test_docker_that_is_killed(pair: Lab, table: Table, rank: int) -> None:
    name, at = ("the head", "the worker")[rank], time.time()
    kill_docker(pair, pair.hosts[rank])

    table.add(f"dockerd killed on {name}", "both ranks start again once it is back", back(pair, at))


def test_a_supervisor_that_is_killed(pair: Lab, table: Table) -> None:
    before = pair.containers()
    pair.root(pair.hosts[0], "systemctl", "kill", "--signal=KILL", "twinserve.service")
    time.sleep(3)
    wait_for(lambda: bool(state(pair)["state"] == "serving"), pair)

    assert pair.containers() == before
    table.add("supervisor killed", "it comes back and adopts the pair; nothing restarts")


def test_a_frozen_rank_shows_by_lack_of_progress_alone(pair: Lab, table: Table) -> None:
    settled(pair, **MANY, canary_interval=5, hang_limit=15)
    for rank, host in enumerate(pair.hosts):
        at = time.time()
        pair.root(host, "docker", "kill", "--signal=STOP", ENGINE)
        way = back(pair, at)
        table.add(f"rank {rank} frozen, `hang_limit` 15 s", "both ranks start again", way)
        assert "no progress for" in state(pair)["last_error"]


def test_a_canary_that_waits_behind_a_long_prompt_is_no_death(pair: Lab, table: Table) -> None:
    before = pair.containers()
    settled(pair, **MANY, canary_interval=1, hang_limit=5)
    pair.verb("engine", pair.hosts[0], "prefill_tokens_per_s=100")
    body = {"messages": [{"role": "user", "content": "word " * 2400}], "max_tokens": 4}
    with beside(pair, "curl", "-sS", "-m", "120", "-H", "Content-Type: application/json",
                "-d", json.dumps(body), CHAT) as prompt:  # fmt: skip
        answer = json.loads(prompt.communicate(timeout=150)[0])

    assert answer["usage"]["prompt_tokens"] > 2000
    assert pair.containers() == before
    table.add("canary waits behind a long prompt", "nothing: not a death")


def test_one_cable_is_pulled(pair: Lab, table: Table) -> None:
    settled(pair, **MANY, canary_interval=60, hang_limit=1800)
    at = time.time()
    pair.verb("cut-rail", "1")
    try:
        table.add("one rail pulled", "both ranks start again over the other", back(pair, at))
        assert state(pair)["effective"]["rails"] == 1
    finally:
        pair.verb("mend-rail", "1")

    wait_for(lambda: "carries packets again" in " ".join(state(pair)["warnings"]), pair)
    pair.root(pair.hosts[0], "systemctl", "restart", "twinserve")
    wait_for(lambda: bool(state(pair)["state"] == "serving"), pair)
    assert state(pair)["effective"]["rails"] == 2


def test_both_cables_are_pulled_and_put_back(pair: Lab, table: Table) -> None:
    for rail in ("1", "2"):
        pair.verb("cut-rail", rail)
    wait_for(lambda: "no CX7 subnet" in state(pair)["detail"], pair)
    assert pair.containers() == {host: "" for host in pair.hosts}

    at = time.time()
    for rail in ("1", "2"):
        pair.verb("mend-rail", rail)

    table.add(
        "both rails pulled, mended", "waits without ranks, then starts; from the mending on", back(pair, at)
    )
    assert state(pair)["effective"]["rails"] == 2


@pytest.mark.parametrize("order", [(0,), (1,), (0, 1), (1, 0)])
def test_o03_nodes_lose_their_power(pair: Lab, table: Table, order: tuple[int, ...]) -> None:
    hosts = [pair.hosts[rank] for rank in order]
    for host in hosts:
        pair.verb("power-cut", host)

    at = switched_on(pair, *hosts)

    names = {
        (0,): "head",
        (1,): "worker",
        (0, 1): "both, head boots first",
        (1, 0): "both, worker boots first",
    }
    table.add(f"power cut: {names[order]}", "starts by itself; from the last node's ssh on", back(pair, at))


def test_o16_the_worker_reboots_while_requests_run(pair: Lab, table: Table) -> None:
    pair.verb("engine", pair.hosts[0], "decode_tokens_per_s=5")
    body = {"messages": [{"role": "user", "content": "Tell me of fibonacci."}], "max_tokens": 2000}
    with beside(pair, "curl", "-sS", "-m", "300", "-H", "Content-Type: application/json",
                "-d", json.dumps(body), CHAT):  # fmt: skip
        wait_for(lambda: bool(pair.get("/health")["requests_running"]), pair)
        pair.verb("reboot", pair.hosts[1])
        at = time.time()
        way = back(pair, at)
    table.add("worker rebooted under requests", "both ranks start again; from the end of its boot on", way)


def test_f02_the_gid_moves_between_two_starts(pair: Lab, table: Table) -> None:
    worker = pair.hosts[1]
    for hca in ("rocep1s0f0", "roceP2p1s0f0"):
        pair.verb("gids", worker, hca, "--shift", "2")
    try:
        at = time.time()
        pair.root(worker, "docker", "kill", ENGINE)
        table.add("GID moved, rank 1 killed", "the next start finds the new index", back(pair, at))
        assert "NCCL_IB_GID_INDEX=5" in pair.inspect(worker)["Config"]["Env"]
        assert "changed 3 -> 5" in " ".join(state(pair)["warnings"])
    finally:
        for hca in ("rocep1s0f0", "roceP2p1s0f0"):
            pair.verb("gids", worker, hca, "--clear")


def test_the_workers_disk_is_full(pair: Lab, table: Table) -> None:
    worker = pair.hosts[1]
    pair.verb("disk", worker, "0.01")
    pair.root(worker, "sh", "-c", "dd if=/dev/zero of=/var/full bs=4k 2>&1 | grep 'No space left'")
    try:
        at = time.time()
        pair.root(worker, "docker", "kill", ENGINE)
        becomes = "both ranks start again, in what the old container leaves"
        table.add("worker's disk full, rank 1 killed", becomes, back(pair, at))
    finally:
        pair.root(worker, "rm", "/var/full")
        pair.verb("disk", worker, "1000")


def test_o12_an_engine_that_crashes_at_once_ends_down(pair: Lab, table: Table) -> None:
    head = pair.hosts[0]
    # Restarts that were counted before are forgotten with the service.
    settled(pair, restart_limit=2)
    pair.root(head, "systemctl", "restart", "twinserve")
    settled(pair, restart_limit=2)
    pair.verb("engine", pair.hosts[1], "crash_at_start=true")
    at = time.time()
    pair.root(pair.hosts[1], "docker", "kill", ENGINE)

    wait_for(lambda: bool(state(pair)["state"] == "down"), pair)

    assert "gave up after 2 restarts; last error: rank 1" in state(pair)["detail"]
    told = [text for _, text in lines(pair, "twinserve", at)]
    assert sum("all ranks are started" in text or "did not start" in text for text in told) <= 2 * 2
    time.sleep(5)
    assert pair.containers() == {host: "" for host in pair.hosts}
    table.add("engine crashes at once", "`restart_limit` tries, then down with the last error")
    pair.verb("engine", pair.hosts[1], "--clear")
    pair.root(head, "systemctl", "restart", "twinserve")
    wait_for(lambda: bool(state(pair)["state"] == "serving"), pair)
