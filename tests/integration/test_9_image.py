"""The image on both nodes: streamed where it cannot be pulled, in both of Docker's stores, replaced."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import NAME
from image_setups import (
    PLAY,
    change_content,
    forget_images,
    image_names,
    own_name,
    pinned,
    registry_off,
)
from lab_pair import ROOT, Lab
from link_setups import own_lab, said, shell

RELEASES = ROOT / "engines/tensorfold/releases"


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


def dockerd(lab: Lab, host: str) -> str:
    """Process of the daemon and content of its configuration."""
    return shell(lab, host, "systemctl show docker --property MainPID; cat /etc/docker/daemon.json")


@pytest.mark.slow
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


def test_c12_docker_is_neither_configured_nor_restarted(pair: Lab, daemons: list[str]) -> None:
    """Its configuration is its owner's: what needs another one is told, and done by him."""
    assert [dockerd(pair, host) for host in pair.hosts] == daemons


def test_c13_nothing_of_docker_is_asked_through_a_library_that_hosts_lack(pair: Lab) -> None:
    for host in pair.hosts:
        lacks = "python3 -c 'import requests' 2>/dev/null && echo there || echo lacking"
        assert shell(pair, host, lacks).strip() == "lacking", "else what was served above proves nothing"


@pytest.mark.slow
def test_c20_other_content_behind_the_name_is_replaced(pair: Lab) -> None:
    head, worker = pair.hosts
    forget_images(pair, worker)
    with registry_off(pair, worker):
        pair.play(PLAY).succeeded()
        change_content(pair, worker, own_name(pair), "111111111111")
        refused = pair.play(PLAY, "-e", "prepare=never").refused()
        foreseen = pair.play(PLAY, "--check").succeeded()

        pair.play(PLAY).succeeded()

    text = f"{worker} runs {own_name(pair)} with patches 111111111111, {head} has cb7c56f7f921"
    assert text in said(refused.output)
    assert foreseen.changed == 1
    assert pair.play(PLAY).succeeded().changed == 0


@pytest.mark.slow
def test_c01_a_streamed_image_serves_and_a_later_pull_restarts_nothing(pair: Lab) -> None:
    worker = pair.hosts[1]
    with registry_off(pair, worker):
        pair.play("site.yml").succeeded()
    assert own_name(pair) in image_names(pair, worker)
    containers = pair.containers()
    assert pair.play("site.yml").succeeded().changed == 0

    pair.root(worker, "docker", "pull", "--quiet", pinned(pair))
    pair.play("site.yml").succeeded()

    assert pair.containers() == containers
    assert pair.play("site.yml").succeeded().changed == 0
    pair.play("playbooks/stop.yml").succeeded()


@pytest.mark.parametrize("new", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_c01_the_image_is_one_in_dockers_two_stores(pair: Lab, new: int) -> None:
    """The head has containerd's store and the worker Docker's own, then the other way round."""
    head, worker = pair.hosts
    for number, host in enumerate(pair.hosts):
        pair.verb("store", host, "containerd" if number == new else "overlay2")
        forget_images(pair, host)
    drivers = [shell(pair, host, "docker info --format '{{.Driver}}'").strip() for host in pair.hosts]
    assert drivers[new] == "overlayfs" and drivers[1 - new] == "overlay2"

    with registry_off(pair, worker):
        pair.play(PLAY).succeeded()
        assert pair.play(PLAY).succeeded().changed == 0
    assert own_name(pair) in image_names(pair, worker)

    forget_images(pair, worker)
    pair.play(PLAY).succeeded()
    ids = [
        shell(pair, host, f"docker image inspect {pinned(pair)} --format '{{{{.Id}}}}'")
        for host in pair.hosts
    ]
    assert ids[0] != ids[1], "else nothing was proved"
    assert pair.play(PLAY).succeeded().changed == 0


def test_c09_a_container_that_gets_no_gpu_is_told_by_what_it_said(pair: Lab) -> None:
    worker, hook = pair.hosts[1], "/usr/bin/nvidia-container-runtime-hook"
    # The tests before this one have restarted it, too: systemd would refuse the fourth within a minute.
    restart = "systemctl reset-failed docker; systemctl restart docker"
    listed = shell(pair, worker, "docker info --format '{{json .Runtimes}}'")
    assert "runc" in listed
    shell(pair, worker, f"mv {hook} /root/; {restart}")
    try:
        refused = said(pair.play(PLAY).refused().output)
    finally:
        shell(pair, worker, f"mv /root/nvidia-container-runtime-hook {hook}; {restart}")
    assert "docker run --help" not in refused, "a hint is no reason"
    assert f"GPU container failed on {worker}: " in refused
    assert "check nvidia-container-toolkit (CDI spec, runtime mode)" in refused


@pytest.mark.slow
@pytest.mark.parametrize("release", sorted(path.stem for path in RELEASES.glob("*.yml")))
def test_every_shipped_release_can_be_chosen(pair: Lab, release: str) -> None:
    """On a machine of its architecture, which the lab's need not be; its weights are not in the lab's hub."""
    machine = shell(pair, pair.hosts[0], "dpkg --print-architecture").strip()
    text = f"extends: {release}\narchitecture: {machine}\n"
    (pair.folder / f"catalogue/here-{release}.yml").write_text(text)
    pair.play("playbooks/preflight.yml", "-e", f"release=here-{release}", "-e", "prepare=never").succeeded()
