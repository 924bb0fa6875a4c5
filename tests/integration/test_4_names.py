"""The worker may be given by any name: what counts is what the head takes it for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_pair import Lab, Play

HOSTS = "/etc/hosts"


@pytest.fixture
def head_hosts(lab: Lab, converged: Play) -> Iterator[None]:
    """The head's /etc/hosts, and the wire as it was, after a test that changes them."""
    lab.root(lab.hosts[0], "cp", "-p", HOSTS, "/root/hosts")
    yield
    lab.root(lab.hosts[0], "mv", "/root/hosts", HOSTS)
    lab.play("site.yml").succeeded()


def by_name(lab: Lab, folder: Path, name: str) -> list[str]:
    """Arguments that give the worker by `name`."""
    host = {lab.hosts[1]: {"ansible_host": name}}
    path = folder / "names.json"
    path.write_text(json.dumps({"sparks": {"children": {f"{lab.name}_pair": {"hosts": host}}}}))
    return ["-i", str(path)]


def address(lab: Lab) -> str:
    """Where the head's supervisor reaches the worker."""
    config = json.loads(lab.root(lab.hosts[0], "cat", "/etc/twinserve/pair.json"))
    return str(config["ranks"][1]["address"])


def test_f05_a_name_that_only_the_controller_knows_gives_way_to_the_lan_address(
    lab: Lab, converged: Play, tmp_path: Path
) -> None:
    head, worker = lab.hosts
    lan = address(lab)

    run = lab.play("site.yml", *by_name(lab, tmp_path, worker)).succeeded()

    assert f"{head} does not know the name {worker}: it reaches {worker} at {lan}" in " ".join(
        run.output.split()
    )
    assert (run.changed, address(lab)) == (0, lan), "nothing that is written depends on the controller"


@pytest.mark.slow
def test_f05_a_name_in_the_heads_own_list_is_kept(
    lab: Lab, converged: Play, head_hosts: None, tmp_path: Path
) -> None:
    head, worker = lab.hosts
    before = lab.containers()
    lab.root(head, "sh", "-c", f"echo {address(lab)} {worker} >> {HOSTS}")
    given = by_name(lab, tmp_path, worker)

    lab.play("site.yml", *given).succeeded()

    assert address(lab) == worker
    assert '"serving"' in lab.root(head, "cat", "/run/twinserve/state.json")
    assert lab.containers() == before
    again = lab.play("site.yml", *given).succeeded()
    assert again.changed == 0
    assert "does not know" not in again.output


def test_f05_a_name_that_means_another_machine_is_not_believed(
    lab: Lab, converged: Play, head_hosts: None, tmp_path: Path
) -> None:
    head, worker = lab.hosts
    lab.root(head, "sh", "-c", f"echo 192.0.2.99 {worker} >> {HOSTS}")

    run = lab.play("site.yml", *by_name(lab, tmp_path, worker)).succeeded()

    told = f"{head} takes the name {worker} for 192.0.2.99, which {worker} does not have"
    assert told in " ".join(run.output.split())
    assert run.changed == 0
