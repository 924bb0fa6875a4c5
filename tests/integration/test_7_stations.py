"""Stations: two cables of 400 Gb/s with names of their own, of which one is used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import NAME
from lab_pair import Lab
from link_setups import links, own_lab, said

FABRIC = "playbooks/fabric.yml"
SETTINGS = ("-e", "rails=1", "-e", "fabric_speed=400")
PORTS = ("enP1p3s0f0np0", "enP2p3s0f0np0")


@pytest.fixture(scope="module")
def stations() -> Iterator[Lab]:
    """Two bare Stations."""
    with own_lab(NAME, "--hardware", "station") as lab:
        yield lab


def test_one_rail_of_a_station_is_addressed_and_proved_at_its_speed(stations: Lab) -> None:
    run = stations.play(FABRIC, *SETTINGS).succeeded()

    assert "1 rail: mlx5_0 <-> mlx5_0" in run.output
    assert "400 Gb/s" in said(run.output)
    assert "are expected" not in said(run.output), "no rail is slower than it should be"
    for number, host in enumerate(stations.hosts, start=1):
        found = links(stations, host)
        assert found[PORTS[0]] == (9000, "UP", [f"192.168.177.{number}/24"])
        assert found[PORTS[1]][2] == []


def test_f16_the_other_rail_is_chosen_by_its_device_and_its_speed_compared(stations: Lab) -> None:
    words = ("-e", "rails=1", "-e", "nccl_ib_hca=mlx5_1", "-e", "fabric_speed=800")

    run = stations.play(FABRIC, *words).succeeded()

    assert "1 rail: mlx5_1 <-> mlx5_1" in run.output
    for host in stations.hosts:
        assert links(stations, host)[PORTS[1]][2] != []
        text = f"{host} rail 0 {PORTS[1]} runs at 400 Gb/s, 800 are expected (fabric_speed)"
        assert text in said(run.output)


def test_the_doctor_measures_the_gpus_memory_on_both_routes(stations: Lab) -> None:
    """Of a pair that does not serve, and has one rail by its settings; nothing of it stays."""
    head, worker = stations.hosts
    entry = "extends: lab\ngpu_memory_rdma: true\n"
    (stations.folder / "catalogue/lab-gpu.yml").write_text(entry, encoding="utf-8")
    stations.play(FABRIC, "-e", "state=absent").succeeded()  # other rails than those of the tests before
    stations.play(FABRIC, "-e", "rails=2", "-e", "fabric_speed=400").succeeded()

    run = stations.play("playbooks/doctor.yml", *SETTINGS, "-e", "release=lab-gpu")

    for rail in (0, 1):
        rates = f"{head} -> {worker} 392.1 Gb/s, {worker} -> {head} 392.1 Gb/s"
        assert f"rail {rail}, GPU memory: {rates}" in said(run.output)
    assert "link: " not in run.output
    assert run.changed == 0
    for host in stations.hosts:
        left = stations.root(host, "sh", "-c", "pgrep -a ib_write_bw; ls -d /run/twinserve/bandwidth; true")
        assert left.strip() == ""


def test_the_doctor_says_what_the_gpus_memory_needs_to_be_measured(stations: Lab) -> None:
    worker = stations.hosts[1]
    stations.root(worker, "mv", "/usr/bin/ib_write_bw", "/usr/bin/ib_write_bw.away")
    try:
        run = stations.play("playbooks/doctor.yml", *SETTINGS, "-e", "release=lab-gpu")
    finally:
        stations.root(worker, "mv", "/usr/bin/ib_write_bw.away", "/usr/bin/ib_write_bw")

    assert f"ib_write_bw is not installed on {worker}: build perftest 26.04.17 or later" in said(run.output)
    assert "Gb/s" not in run.output
