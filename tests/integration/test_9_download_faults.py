"""A download that something breaks in the middle: told in clear words, and right after a second run."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import pytest
from hub_model import FAST, HOME, LAST, MIB, NONE, Model, fresh_model, users_client
from lab_pair import Lab, Play
from under_way import one_line, running, wait_for

pytestmark = pytest.mark.slow
PLAY = "playbooks/model.yml"


@pytest.fixture(scope="module")
def pair(lab: Lab, converged: Play) -> Lab:
    """The pair, stopped: what is broken here is not its business."""
    lab.play("playbooks/stop.yml").succeeded()
    return lab


@pytest.fixture
def model(pair: Lab) -> Iterator[Model]:
    """A model that only the hub has."""
    with fresh_model(pair) as model:
        yield model


def test_m20_lost_ssh_sessions_cost_nothing(model: Model) -> None:
    model.serve(slow=NONE, only=[LAST])
    with users_client(model.lab), running(model.lab, PLAY, *model.words) as play:
        wait_for(model.in_the_middle)
        model.lab.root(model.lab.hosts[0], "loginctl", "terminate-user", "nvidia")
        time.sleep(1)
        assert len(model.jobs()) == 1
        model.serve()
        run = play.end()

    run.succeeded()
    assert "downloads with /home/nvidia/.local/bin/hf as nvidia" in one_line(run.output)
    assert model.is_right()
    assert set(model.fetched().values()) == {1}


def test_the_heads_power_goes_in_the_middle(model: Model) -> None:
    head = model.lab.hosts[0]
    model.serve(slow=NONE, only=[LAST])
    with running(model.lab, PLAY, *model.words) as play:
        wait_for(model.in_the_middle)
        model.lab.root(head, "sync")
        model.lab.verb("power-cut", head)
        run = play.end()
    run.refused()
    model.lab.verb("power-on", head)
    assert model.begun() and model.lab.root(head, "ls", f"{HOME}/hub/.locks/models--test--weights")
    model.serve()

    run = model.lab.play(PLAY, *model.words).succeeded()

    assert model.is_right(), run.output
    assert model.fetched() == {**dict.fromkeys([*FAST, "config.json"], 1), LAST: 2}


def test_m17_a_hub_that_dies_for_a_while_is_waited_for(model: Model) -> None:
    model.serve(slow=NONE, only=[LAST])
    with running(model.lab, PLAY, *model.words) as play:
        wait_for(model.in_the_middle)
        model.lab.verb("service", "hub", "off")
        time.sleep(20)  # longer than the client itself tries
        model.serve()
        model.lab.verb("service", "hub", "on")
        run = play.end()

    run.succeeded()
    assert model.is_right()
    assert {model.fetched()[name] for name in FAST} == {1}


def test_m17_a_hub_that_stays_away_is_told_and_a_second_run_ends_right(model: Model) -> None:
    model.serve(slow=NONE, only=[LAST])
    with running(model.lab, PLAY, *model.words, "-e", "download_stall_s=60") as play:
        wait_for(model.in_the_middle)
        model.lab.verb("service", "hub", "off")
        run = play.end()
    run.refused()
    assert "Hugging Face does not answer any more: run this again: what has arrived is kept" in one_line(
        run.output
    )
    model.serve()
    model.lab.verb("service", "hub", "on")

    model.lab.play(PLAY, *model.words).succeeded()

    assert model.is_right()
    assert {model.fetched()[name] for name in FAST} == {1}


def test_m10_a_hub_that_stands_still_is_told_and_a_second_run_ends_right(model: Model) -> None:
    model.serve(slow=NONE, only=[LAST])

    run = model.lab.play(PLAY, *model.words, "-e", "download_stall_s=30").refused()

    assert f"{model.name}: download failed (exit 1): no progress for 30 s" in one_line(run.output)
    assert model.lab.root(model.lab.hosts[0], "docker", "ps", "--all", "--quiet") == ""
    model.serve()
    model.lab.play(PLAY, *model.words).succeeded()
    assert model.is_right()
    assert {model.fetched()[name] for name in FAST} == {1}


def test_m10_a_lock_that_another_process_holds_is_named_and_left_alone(model: Model) -> None:
    head = model.lab.hosts[0]
    etag = subprocess.run(["sha256sum", model.source / LAST], capture_output=True, text=True, check=True)
    locks = f"{HOME}/hub/.locks/models--test--weights"
    lock = f"{locks}/{etag.stdout.split()[0]}.lock"
    model.lab.root(head, "install", "-d", "-o", "nvidia", "-g", "nvidia", locks)
    model.lab.root(head, "systemd-run", "--unit=foreign", "--uid=nvidia", "flock", lock, "sleep", "600")
    try:
        run = model.lab.play(PLAY, *model.words, "-e", "download_stall_s=30").refused()
        pid, active = (
            model.lab.root(head, "systemctl", "show", "--value", "--property", name, "foreign").strip()
            for name in ("MainPID", "ActiveState")
        )
    finally:
        model.lab.root(head, "systemctl", "stop", "foreign")

    told = f"no progress for 30 s, waiting on {lock}, which process {pid} holds: let it end, and run again"
    assert (told in one_line(run.output), active) == (True, "active"), run.output
    model.lab.play(PLAY, *model.words).succeeded()
    assert model.is_right()


def test_a_disk_that_fills_up_is_told_and_a_second_run_ends_right(model: Model) -> None:
    head = model.lab.hosts[0]
    model.publish({LAST: 64 * MIB})
    model.serve(slow=4 * MIB, only=[LAST])
    try:
        with running(model.lab, PLAY, *model.words) as play:
            wait_for(lambda: model.in_the_middle() and model.arrived() > 16 * MIB)
            model.lab.verb("disk", head, "0.02")
            run = play.end()
    finally:
        model.lab.verb("disk", head, "900")
    run.refused()
    told = f"the disk of {HOME} is full: make room there, and run this again: what has arrived is kept"
    assert told in one_line(run.output), run.output
    model.serve()

    model.lab.play(PLAY, *model.words).succeeded()

    assert model.is_right()
    assert {model.fetched()[name] for name in FAST} == {1}
