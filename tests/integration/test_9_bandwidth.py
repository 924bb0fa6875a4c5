"""fabric_bandwidth_test: what each rail moves, on request, and never under a rank."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab_pair import Lab, Play
from link_setups import said

MEASURE = ("playbooks/fabric.yml", "-e", "fabric_bandwidth_test=true")
UNITS = "systemctl list-units --all --no-legend 'twinserve-bandwidth*'"
LEFT = f"({UNITS}; pgrep -a ib_write_bw; ls -d /run/twinserve/bandwidth) 2>/dev/null; true"


def left_behind(lab: Lab) -> list[str]:
    """Units, processes and files of a measurement, on either node."""
    return [lab.root(host, "sh", "-c", LEFT).strip() for host in lab.hosts]


def test_f17_it_is_refused_while_the_pair_serves(lab: Lab, converged: Play) -> None:
    containers = lab.containers()

    run = lab.play(*MEASURE).refused()

    assert f"{lab.hosts[0]}: a rank runs (twinserve-rank.service)" in said(run.output)
    assert "run playbooks/stop.yml first" in said(run.output)
    assert "Listen on every node" not in run.output
    assert run.changed == 0
    assert lab.containers() == containers
    assert left_behind(lab) == ["", ""]


@pytest.fixture(scope="module")
def stopped(lab: Lab, converged: Play) -> Iterator[Lab]:
    """The pair, addressed and not serving; its rates as they were at the end."""
    lab.play("playbooks/stop.yml").succeeded()
    yield lab
    for host in lab.hosts:
        lab.verb("bandwidth", host, "--clear")


def test_each_rail_is_measured_both_ways_and_alone_and_nothing_is_left(stopped: Lab) -> None:
    head, worker = stopped.hosts

    run = stopped.play(*MEASURE).succeeded()

    for rail in ("rail 0", "rail 1"):
        assert f"{rail}: {head} -> {worker} 92.6 Gb/s, {worker} -> {head} 92.6 Gb/s" in said(run.output)
    assert f"2 rails at once: {head} -> {worker} 185.2 Gb/s, {worker} -> {head} 185.2 Gb/s" in said(
        run.output
    )
    assert "are expected" not in said(run.output)
    assert run.changed == 0
    assert left_behind(stopped) == ["", ""]


def test_f17_a_link_that_moves_13_is_told_with_the_power_cycle(stopped: Lab) -> None:
    for host in stopped.hosts:
        stopped.verb("bandwidth", host, "13.2")

    run = stopped.play(*MEASURE).succeeded()

    for rail in ("rail 0", "rail 1"):
        text = f"{rail} moves 13.2 Gb/s on a 200 Gb/s link (degraded CX7 start): power-cycle both nodes"
        assert text in said(run.output)
    assert left_behind(stopped) == ["", ""]


def test_f17_without_the_tool_it_is_skipped_with_a_note(stopped: Lab) -> None:
    worker = stopped.hosts[1]
    stopped.root(worker, "mv", "/usr/bin/ib_write_bw", "/usr/bin/ib_write_bw.away")
    try:
        run = stopped.play(*MEASURE).succeeded()
    finally:
        stopped.root(worker, "mv", "/usr/bin/ib_write_bw.away", "/usr/bin/ib_write_bw")

    assert f"ib_write_bw (package perftest) is not installed on {worker}" in said(run.output)
    assert "Gb/s," not in said(run.output).partition("not measured")[2]
