"""The image on both nodes: streamed where it cannot be pulled, in both of Docker's stores, replaced."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from conftest import NAME
from image_setups import (
    change_content,
    forget_images,
    image_names,
    own_name,
    pinned,
    registry_off,
    set_store,
)
from lab_pair import ROOT, Lab
from link_setups import own_lab, said, shell

PLAY = "playbooks/container.yml"
STREAM = "twinserve-job-stream-*.service"


@pytest.fixture(scope="module")
def pair() -> Iterator[Lab]:
    """Two hosts with a link, and no image yet."""
    with own_lab(NAME) as lab:
        lab.play("playbooks/fabric.yml").succeeded()
        yield lab


@pytest.fixture(scope="module")
def daemons(pair: Lab) -> list[str]:
    """What Docker was like before any image came."""
    return [dockerd(pair, host) for host in pair.hosts]


@contextmanager
def in_the_background(lab: Lab, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A run of ansible-playbook that may be met in the middle."""
    argv = [str(ROOT / ".venv/bin/ansible-playbook"), "-i", str(lab.inventory), *words]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        yield run


def dockerd(lab: Lab, host: str) -> str:
    """Process of the daemon and content of its configuration."""
    return shell(lab, host, "systemctl show docker --property MainPID; cat /etc/docker/daemon.json")


def test_c08_a_load_that_brings_nothing_is_no_success(pair: Lab, daemons: list[str]) -> None:
    worker, real = pair.hosts[1], "/usr/bin/docker"
    script = f"""mv {real} {real}.real
printf '#!/bin/sh\\n[ "$1" = load ] && exec cat >/dev/null\\nexec {real}.real "$@"\\n' >{real}
chmod 755 {real}"""
    shell(pair, worker, script)
    try:
        with registry_off(pair, worker):
            refused = pair.play(PLAY).refused()
    finally:
        shell(pair, worker, f"mv {real}.real {real}")
    assert f"docker load succeeded on {worker} but {own_name(pair)} is missing" in said(refused.output)


def test_c03_a_stream_that_is_cut_off_is_done_again_and_leaves_nothing(pair: Lab, daemons: list[str]) -> None:
    head, worker = pair.hosts
    shell(pair, head, "tc qdisc add dev enp1s0f0np0 root tbf rate 20mbit burst 64kb latency 400ms")
    with registry_off(pair, worker):
        with in_the_background(pair, PLAY) as run:
            listed = f"systemctl list-units --plain --no-legend --state=running '{STREAM}'"
            unit = ""
            while not unit and run.poll() is None:
                time.sleep(0.5)
                unit = (shell(pair, head, listed).split() or [""])[0]
            time.sleep(3)
            shell(pair, head, f"systemctl kill --signal KILL {unit}")
            output, _ = run.communicate(timeout=120)
        assert run.returncode != 0, output
        assert f"stream of the image to {worker} failed" in said(output)
        assert image_names(pair, worker) == set()
        shell(pair, head, "tc qdisc del dev enp1s0f0np0 root")

        pair.play(PLAY).succeeded()

        assert image_names(pair, worker) == {own_name(pair)}
        assert pair.play(PLAY).succeeded().changed == 0
        assert shell(pair, head, "find /tmp /var/tmp -size +10M").strip() == ""


def test_c01_a_streamed_image_serves_and_a_later_pull_restarts_nothing(pair: Lab) -> None:
    worker = pair.hosts[1]
    pair.play("site.yml").succeeded()
    containers = pair.containers()
    assert pair.play("site.yml").succeeded().changed == 0

    pair.root(worker, "docker", "pull", "--quiet", pinned(pair))
    pair.play("site.yml").succeeded()

    assert pair.containers() == containers
    assert pair.play("site.yml").succeeded().changed == 0


def test_c12_docker_is_neither_configured_nor_restarted(pair: Lab, daemons: list[str]) -> None:
    """Its configuration is its owner's: what needs another one is told, and done by him."""
    assert [dockerd(pair, host) for host in pair.hosts] == daemons


def test_c13_nothing_of_docker_is_asked_through_a_library_that_hosts_lack(pair: Lab) -> None:
    for host in pair.hosts:
        lacks = "python3 -c 'import requests' 2>/dev/null && echo there || echo lacking"
        assert shell(pair, host, lacks).strip() == "lacking", "else what was served above proves nothing"


def test_c20_other_content_behind_the_name_is_replaced(pair: Lab) -> None:
    head, worker = pair.hosts
    pair.play("playbooks/stop.yml").succeeded()
    pair.root(worker, "docker", "rmi", pinned(pair))
    change_content(pair, worker, own_name(pair), "111111111111")
    with registry_off(pair, worker):
        refused = pair.play(PLAY, "-e", "prepare=never").refused()
        foreseen = pair.play(PLAY, "--check").succeeded()

        pair.play(PLAY).succeeded()

    text = f"{worker} runs {own_name(pair)} with patches 111111111111, {head} has cb7c56f7f921"
    assert text in said(refused.output)
    assert foreseen.changed == 1
    assert pair.play(PLAY).succeeded().changed == 0


@pytest.mark.parametrize("new", [0, 1])
def test_c01_the_image_goes_between_dockers_two_stores(pair: Lab, new: int) -> None:
    """The head has the classic store and the worker containerd's, then the other way round."""
    for number, host in enumerate(pair.hosts):
        set_store(pair, host, containerd=number == new)
        forget_images(pair, host)
    drivers = [shell(pair, host, "docker info --format '{{.Driver}}'").strip() for host in pair.hosts]
    assert drivers[new] == "overlayfs" and drivers[1 - new] == "overlay2"
    with registry_off(pair, pair.hosts[1]):
        pair.play(PLAY).succeeded()
        assert pair.play(PLAY).succeeded().changed == 0
    assert own_name(pair) in image_names(pair, pair.hosts[1])


def test_c09_a_container_that_gets_no_gpu_is_told_by_what_it_said(pair: Lab) -> None:
    worker, hook = pair.hosts[1], "/usr/bin/nvidia-container-runtime-hook"
    listed = shell(pair, worker, "docker info --format '{{json .Runtimes}}'")
    assert "runc" in listed
    shell(pair, worker, f"mv {hook} /root/; systemctl restart docker")
    try:
        refused = said(pair.play(PLAY).refused().output)
    finally:
        shell(pair, worker, f"mv /root/nvidia-container-runtime-hook {hook}; systemctl restart docker")
    assert "docker run --help" not in refused, "a hint is no reason"
    assert f"GPU container failed on {worker}: " in refused
    assert "check nvidia-container-toolkit (CDI spec, runtime mode)" in refused
