"""What was done to the hosts' devices: kept in one file, by device, and undone one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
from twinlab.errors import LabError
from twinlab.hardware import SPARK
from twinlab.layout import Lab
from twinlab.machine import quirks
from twinlab.machine.quirks import PortQuirk, Quirks
from twinlab.subnets import Network

MAIN, TWIN, SPARE, _ = SPARK.ports


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    found = Lab("spark", tmp_path, Network(0))
    found.folder.mkdir()
    return found


def test_nothing_is_odd_at_first_and_after_all_was_undone(lab: Lab) -> None:
    device = quirks.device(lab.hosts[0], MAIN.hca)
    odd = quirks.read(lab).with_lost(device, True).with_gids(device, 2, True).with_flaky(1, True)
    assert quirks.parse(quirks.render(odd)) == odd
    assert odd.with_lost(device, False).with_gids(device, 0, False).with_flaky(1, False) == Quirks()


def test_each_port_has_what_was_done_to_it(lab: Lab) -> None:
    head, worker = lab.hosts
    odd = Quirks().with_gids(f"spark-a/{MAIN.hca}", 2, False).with_lost(f"spark-b/{TWIN.hca}", True)
    odd = odd.with_flaky(1, True)
    assert odd.of_port(head, MAIN) == PortQuirk(gid_shift=2, is_flaky=True)
    assert odd.of_port(head, TWIN) == PortQuirk()
    assert odd.of_port(worker, TWIN) == PortQuirk(is_lost=True)


def test_a_bad_cable_is_bad_in_the_socket_where_it_is(lab: Lab) -> None:
    head, worker = lab.hosts
    odd = Quirks().with_flaky(1, True).with_socket(head, 1)
    flaky = [odd.of_port(host, port).is_flaky for host in (head, worker) for port in (MAIN, SPARE)]
    assert flaky == [False, True, True, False]


def test_a_power_cycle_brings_back_the_devices_of_its_host(lab: Lab) -> None:
    odd = Quirks().with_lost("spark-a/x", True).with_lost("spark-b/x", True)
    assert odd.after_power_cycle(lab.hosts[0]).lost == ("spark-b/x",)


def test_a_device_that_is_not_there_is_refused(lab: Lab) -> None:
    with pytest.raises(LabError, match="spark-b has no RDMA device mlx5_0: rocep1s0f0, roceP2p1s0f0"):
        quirks.device(lab.hosts[1], "mlx5_0")


def test_drawn_is_what_the_simulator_wrote_last(lab: Lab) -> None:
    odd = Quirks().with_flaky(1, True)
    assert not quirks.is_drawn(lab, Quirks())
    lab.drawn_quirks.write_text(quirks.render(odd))
    assert quirks.is_drawn(lab, odd)
    assert not quirks.is_drawn(lab, Quirks())
