"""An image that is broken off on its way: told, right after a second run, and nothing is left over."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from conftest import NAME
from image_setups import (
    PLAY,
    forget_images,
    heard,
    image_names,
    in_the_background,
    job_under_way,
    own_name,
    pinned,
    registry_off,
    rest,
    slow_rail,
)
from lab_pair import Lab
from link_setups import RAILS, own_lab, said, shell

BROKE_OFF = "the connection to {worker} at 192.168.177.2 or 192.168.178.2 broke off; run again"
LEFT_OVER = "find /tmp /var/tmp /var/lib/docker/tmp -size +1M"


@pytest.fixture(scope="module")
def linked() -> Iterator[Lab]:
    """Two hosts with a link."""
    with own_lab(NAME) as lab:
        lab.play("playbooks/fabric.yml").succeeded()
        yield lab


@pytest.fixture
def pair(linked: Lab) -> Lab:
    """The image on the head, and none on the worker."""
    head, worker = linked.hosts
    linked.root(head, "docker", "pull", "--quiet", pinned(linked))
    forget_images(linked, worker)
    return linked


@contextmanager
def slow_registry(lab: Lab, rate: str) -> Iterator[None]:
    """What the controller serves takes a while."""
    tc = ["tc", "qdisc", "{}", "dev", f"lab-{lab.name}", "root"]
    limit = ["tbf", "rate", rate, "burst", "64kb", "latency", "400ms"]
    subprocess.run([*(word.format("add") for word in tc), *limit], check=True)
    try:
        yield
    finally:
        subprocess.run([word.format("del") for word in tc], check=True)


def sent(lab: Lab) -> int:
    """Bytes that the head has sent on its main rail."""
    return int(shell(lab, lab.hosts[0], f"cat /sys/class/net/{RAILS[0]}/statistics/tx_bytes"))


def is_right(lab: Lab) -> None:
    """The worker has the head's image by our name and nothing else, and no host has leftovers."""
    assert image_names(lab, lab.hosts[1]) == {own_name(lab)}
    assert lab.play(PLAY).succeeded().changed == 0
    assert [shell(lab, host, LEFT_OVER) for host in lab.hosts] == ["", ""]


def signal_the_stream(lab: Lab, name: str) -> None:
    """STOP halts it, so that a second run comes to it however slow that is; CONT lets it go on."""
    shell(lab, lab.hosts[0], f"systemctl kill --signal {name} 'twinserve-job-stream-*'")


@pytest.mark.slow
def test_m20_two_controllers_at_once_stream_once_and_both_show_it(pair: Lab) -> None:
    head, worker = pair.hosts
    before, title = sent(pair), f"{worker}: stream of the image to {worker}"
    with registry_off(pair, worker), ExitStack() as runs:
        runs.enter_context(slow_rail(pair, "16mbit"))
        first = runs.enter_context(in_the_background(pair, PLAY))
        job_under_way(pair, head, "stream", first)
        signal_the_stream(pair, "STOP")
        second = runs.enter_context(in_the_background(pair, PLAY))
        attached = heard(second, f"{title} already running since")
        signal_the_stream(pair, "CONT")
        for output in (rest(first), attached + rest(second)):
            assert re.search(rf"{title}: 0\.\d of 0\.1 GB \(\d+%\), \d\.\d MB/s, \d+ s left", output), output
        numbers = json.loads(shell(pair, head, "cat /run/twinserve/progress/stream-*.json"))
        assert numbers["bytes"] == numbers["total"] > 90e6 and numbers["rate"] > 0
        assert sent(pair) - before < 1.2 * numbers["bytes"]
        is_right(pair)


@pytest.mark.slow
def test_m20_a_stream_outlives_its_controller(pair: Lab) -> None:
    head, worker = pair.hosts
    with registry_off(pair, worker):
        with slow_rail(pair, "20mbit"), in_the_background(pair, PLAY) as run:
            job_under_way(pair, head, "stream", run)
            os.killpg(run.pid, signal.SIGKILL)
            signal_the_stream(pair, "STOP")
        with in_the_background(pair, PLAY) as again:
            heard(again, f"stream of the image to {worker} already running since")
            signal_the_stream(pair, "CONT")
            rest(again)
        is_right(pair)


def kill_the_job(lab: Lab, run: subprocess.Popen[str]) -> None:
    signal_the_stream(lab, "KILL")


def kill_the_workers_docker(lab: Lab, run: subprocess.Popen[str]) -> None:
    shell(lab, lab.hosts[1], "systemctl kill --signal KILL docker")


def cut_the_workers_power(lab: Lab, run: subprocess.Popen[str]) -> None:
    lab.verb("power-cut", lab.hosts[1])
    run.wait(timeout=1200)
    lab.verb("power-on", lab.hosts[1])


def cut_the_rail(lab: Lab, run: subprocess.Popen[str]) -> None:
    lab.verb("cut-rail", "1")
    run.wait(timeout=1200)
    lab.verb("mend-rail", "1")


def fill_the_workers_disk(lab: Lab, run: subprocess.Popen[str]) -> None:
    lab.verb("disk", lab.hosts[1], "0.03")
    run.wait(timeout=1200)
    lab.verb("disk", lab.hosts[1], "1000")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (kill_the_job, "stream of the image to {worker} failed (exit 9): no output"),
        (kill_the_workers_docker, "docker of {worker} went away meanwhile"),
        (cut_the_workers_power, BROKE_OFF),
        (cut_the_rail, BROKE_OFF),
        (fill_the_workers_disk, "the image store of {worker} is full (no space left on device)"),
    ],
)
def test_c03_a_stream_is_right_after_a_second_run(
    pair: Lab, fault: Callable[[Lab, subprocess.Popen[str]], None], told: str
) -> None:
    head, worker = pair.hosts
    with registry_off(pair, worker):
        with slow_rail(pair, "20mbit"), in_the_background(pair, PLAY) as run:
            job_under_way(pair, head, "stream", run)
            fault(pair, run)
            output, _ = run.communicate(timeout=1200)
        assert run.returncode != 0, output
        assert told.format(worker=worker) in said(output), output
        assert image_names(pair, worker) == set()

        pair.play(PLAY).succeeded()

        is_right(pair)


@pytest.mark.slow
def test_a_pull_is_right_after_the_registry_was_killed_in_the_middle(linked: Lab) -> None:
    pair = linked
    for host in pair.hosts:
        forget_images(pair, host)
    with slow_registry(pair, "20mbit"), in_the_background(pair, PLAY) as run:
        job_under_way(pair, pair.hosts[0], "pull", run)
        pid = (pair.folder / "pids/registry").read_text().split()[0]
        os.kill(int(pid), signal.SIGKILL)
        output, _ = run.communicate(timeout=1200)
    assert run.returncode != 0, output
    registry = pinned(pair).partition("/")[0]
    assert f"pull of the image failed (exit 1): {registry} broke off in the middle; run again" in said(output)
    assert image_names(pair, pair.hosts[0]) == set()
    pair.verb("up")

    pair.play(PLAY).succeeded()

    assert pair.play(PLAY).succeeded().changed == 0
    for host in pair.hosts:
        listed = shell(pair, host, "docker images --digests --format '{{.Repository}}@{{.Digest}}'")
        assert listed.split() == [pinned(pair)]
        assert shell(pair, host, LEFT_OVER) == ""
