"""stop, status, prepare, a reboot, and a rank that dies."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from lab_pair import Lab, Play
from link_setups import RAILS, said


def wait_for_answer(lab: Lab, seconds: float = 90) -> None:
    """Until the pair answers by itself; the bound only ends a test that would hang."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        state = lab.verb("exec", lab.hosts[0], "cat", "/run/twinserve/state.json", check=False)
        if '"state": "serving"' in state:
            assert "OK" in lab.chat("Reply with OK.")
            return
        time.sleep(0.5)
    pytest.fail(f"the pair did not come back: {state}")


def test_status_is_one_screen(lab: Lab, converged: Play) -> None:
    run = lab.play("playbooks/status.yml").succeeded()

    assert run.changed == 0
    for text in ("serving", "rank 0", "rank 1", "rail 0", "rail 1", "window   1048576", "restarts 0"):
        assert text in run.output
    assert "drift" not in run.output


def test_status_is_also_a_document(lab: Lab, converged: Play, tmp_path: Path) -> None:
    report = tmp_path / "status.json"
    lab.play("playbooks/status.yml", "-e", f"status_file={report}").succeeded()

    (pair,) = json.loads(report.read_text())
    assert (pair["health"], pair["serves"], pair["window"]) == ("healthy", True, 1048576)
    assert [(rank["name"], rank["running"]) for rank in pair["ranks"]] == [(host, True) for host in lab.hosts]
    assert [rail["used"] for rail in pair["rails"]] == [True, True]


def test_f09_a_second_rail_that_lost_its_address_under_a_running_pair_waits(
    lab: Lab, converged: Play
) -> None:
    before, worker, twin = lab.containers(), lab.hosts[1], RAILS[1]
    lab.root(worker, "ip", "addr", "del", "192.168.178.2/24", "dev", twin)
    try:
        run = lab.play("site.yml").succeeded()
        assert "192.168.178.2" not in lab.root(worker, "ip", "-br", "-4", "addr", "show", twin)
    finally:
        lab.root(worker, "networkctl", "reconfigure", twin)

    assert (lab.containers(), run.changed) == (before, 0)
    lacks = f"not used: {worker} {twin} lacks 192.168.178.2/24, which is not written under a running rank"
    assert f"{lacks}: run playbooks/stop.yml, then playbooks/fabric.yml" in said(run.output)


def test_stopped_stays_stopped_through_a_reboot_and_frees_the_memory(lab: Lab, converged: Play) -> None:
    lab.play("playbooks/stop.yml").succeeded()

    assert lab.containers() == {host: "" for host in lab.hosts}
    assert lab.play("playbooks/stop.yml").succeeded().changed == 0

    lab.verb("reboot", lab.hosts[0])

    assert not lab.node(lab.hosts[0]).service("twinserve").is_running
    assert "stopped: site.yml starts it" in lab.play("playbooks/status.yml").refused().output


def test_prepare_does_not_start_the_ranks(lab: Lab, converged: Play) -> None:
    lab.play("playbooks/stop.yml").succeeded()

    run = lab.play("playbooks/prepare.yml").succeeded()

    assert run.changed == 0
    assert lab.containers() == {host: "" for host in lab.hosts}


def test_site_starts_a_stopped_pair_again(lab: Lab, converged: Play) -> None:
    lab.play("site.yml").succeeded()

    assert "OK" in lab.chat("Reply with OK.")


def test_o03_the_pair_comes_back_after_a_power_cut_of_both_nodes(lab: Lab, converged: Play) -> None:
    before = lab.containers()
    for host in lab.hosts:
        lab.verb("power-cut", host)
    for host in lab.hosts:
        lab.verb("power-on", host)

    wait_for_answer(lab)

    assert not set(before.values()) & set(lab.containers().values())
    assert lab.play("site.yml").succeeded().changed == 0


def test_o12_a_dead_rank_restarts_the_pair_as_one(lab: Lab, converged: Play) -> None:
    before = lab.containers()

    lab.root(lab.hosts[1], "docker", "kill", "glm53-flash-tf")
    limit = time.monotonic() + 60
    while lab.containers()[lab.hosts[0]] == before[lab.hosts[0]] and time.monotonic() < limit:
        time.sleep(0.5)
    wait_for_answer(lab)

    after = lab.containers()
    assert all(before[host] != after[host] and after[host] for host in lab.hosts)


def test_a_supervisor_that_is_killed_adopts_the_running_pair(lab: Lab, converged: Play) -> None:
    before = lab.containers()

    lab.root(lab.hosts[0], "systemctl", "kill", "--signal=KILL", "twinserve.service")
    time.sleep(3)
    wait_for_answer(lab)

    assert lab.containers() == before
