"""The kinds of machine, and how a lab remembers which one it plays."""

from __future__ import annotations

from pathlib import Path

import pytest
from twinlab import lifecycle, network, power
from twinlab.errors import LabError
from twinlab.hardware import SPARK, STATION, Hardware, of_kind
from twinlab.layout import Lab
from twinlab.subnets import Network


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A lab that is not up."""
    monkeypatch.setattr(network, "exists", lambda lab: False)
    found = Lab("spark", tmp_path, Network(0))
    found.folder.mkdir()
    return found


@pytest.mark.parametrize("hardware", [SPARK, STATION])
def test_ports_fit_into_the_names_of_linux_and_are_told_apart(hardware: Hardware) -> None:
    for what in ("netdev", "hca", "pci", "mac_index"):
        assert len({getattr(port, what) for port in hardware.ports}) == len(hardware.ports)
    assert all(len(port.netdev) <= 15 for port in hardware.ports)
    assert [port.rail for port in hardware.cabled()] == [1, 2]


def test_twins_of_a_spark_are_in_one_socket_and_a_station_has_two_cables() -> None:
    assert [port.netdev for port in SPARK.cabled(1)] == ["enp1s0f1np1", "enP2p1s0f1np1"]
    assert STATION.sockets == (0,)


def test_a_lab_is_of_sparks_unless_it_was_told_otherwise_and_remembers_it(lab: Lab) -> None:
    assert lab.hosts[0].hardware == SPARK
    lifecycle._choose_hardware(lab, "station")
    assert lab.hosts[1].hardware == STATION
    lifecycle._choose_hardware(lab, None)
    assert lab.hardware == STATION


def test_other_hardware_is_refused_while_the_lab_is_up(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "exists", lambda lab: True)
    lifecycle._choose_hardware(lab, "spark")
    with pytest.raises(LabError, match="is up, as spark: `lab down` first"):
        lifecycle._choose_hardware(lab, "station")
    with pytest.raises(LabError, match="--hardware abacus: spark or station"):
        of_kind("abacus")


def test_the_gpu_that_computes_is_not_the_first_of_a_station(lab: Lab) -> None:
    lifecycle._choose_hardware(lab, "station")
    head, worker = (power.gpus(host) for host in lab.hosts)
    assert [gpu["name"] for gpu in head["gpus"]] == ["NVIDIA RTX PRO 2000 Blackwell", "NVIDIA GB300"]
    assert head["engine"] == 1
    assert not {gpu["uuid"] for gpu in head["gpus"]} & {gpu["uuid"] for gpu in worker["gpus"]}
