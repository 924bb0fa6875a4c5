"""Two pairs in one inventory: deployed, changed and shown in one run; none suffers from the other's fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab_pair import Lab, Play
from link_setups import own_lab, said


@pytest.fixture(scope="module")
def other() -> Iterator[Lab]:
    """A second pair beside that of the story, bare at first."""
    with own_lab("two") as made:
        yield made


@pytest.fixture(scope="module")
def both(lab: Lab, other: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One inventory with both pairs; each has its ssh configuration and its settings in its own group."""
    folder, children = tmp_path_factory.mktemp("both"), dict[str, Any]()
    (folder / "group_vars").mkdir()
    for one in (lab, other):
        sparks = yaml.safe_load((one.inventory / "hosts.yml").read_text())["sparks"]
        settings = (one.inventory / "group_vars/sparks/lab.yml").read_text()
        ((name, group),) = sparks["children"].items()
        children[name] = {**group, "vars": sparks["vars"]}
        (folder / f"group_vars/{name}.yml").write_text(settings)
    (folder / "hosts.yml").write_text(yaml.safe_dump({"sparks": {"children": children}}))
    return folder


def play(lab: Lab, both: Path, *words: str) -> Play:
    """Run a playbook against both pairs: what is given last is merged over the lab's own inventory."""
    return lab.play("-i", str(both), *words)


def test_one_run_deploys_the_new_pair_and_leaves_the_other_alone(
    lab: Lab, other: Lab, converged: Play, both: Path
) -> None:
    lab.play("site.yml").succeeded()
    before = lab.containers()

    run = play(lab, both, "site.yml").succeeded()

    assert lab.containers() == before
    assert sum(run.recap[host]["changed"] for host in lab.hosts) == 0
    assert "OK" in other.chat("Reply with OK.")
    assert play(lab, both, "site.yml").succeeded().changed == 0


def test_status_shows_all_and_fails_for_the_pair_that_does_not_serve(
    lab: Lab, other: Lab, both: Path, tmp_path: Path
) -> None:
    play(lab, both, "playbooks/status.yml").succeeded()
    play(lab, both, "playbooks/stop.yml", "--limit", ",".join(other.hosts)).succeeded()

    report = tmp_path / "status.json"
    run = play(lab, both, "playbooks/status.yml", "-e", f"status_file={report}").refused()

    assert {host: counts["failed"] for host, counts in run.recap.items() if counts["failed"]} == {
        other.hosts[0]: 1
    }
    assert [one["health"] for one in json.loads(report.read_text())] == ["healthy", "stopped"]
    assert "OK" in lab.chat("Reply with OK.")


def test_a_fault_of_one_pair_does_not_keep_the_other_from_a_change(lab: Lab, other: Lab, both: Path) -> None:
    """The worker of one is off: the run fails for that pair, before anything is changed there."""
    worker = other.hosts[1]
    before = lab.containers()
    other.verb("power-cut", worker)
    try:
        run = play(lab, both, "serve.yml", "-e", "parallel=2").refused()
    finally:
        other.verb("power-on", worker)

    assert f"{worker} cannot be looked at" in said(run.output)
    assert [run.recap[host]["failed"] for host in lab.hosts] == [0, 0]
    assert all(lab.containers()[host] not in ("", before[host]) for host in lab.hosts)
    assert "--parallel 2" in " ".join(lab.inspect(lab.hosts[0])["Args"])
    assert other.containers()[other.hosts[0]] == ""
    play(lab, both, "site.yml").succeeded()
