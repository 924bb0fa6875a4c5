"""The link of two Stations: ConnectX-8 names, two cables of 400 Gb/s instead of PCIe twins. Data, no code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import fake_pair as pair
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.rails import pair_rails
from ansible_collections.twinserve.pair.plugins.module_utils.selection import select_devices
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device
from fabric_plans import addresses, plan, rails, refusal, written
from probes import link, maker, network

# Both names that a ConnectX-8 has been seen with: a card in each PCIe domain, and both ports on one card.
CARDS = (
    ("enP1p3s0f0np0", "mlx5_0", "0001:03:00.0"),
    ("enP2p3s0f0np0", "mlx5_1", "0002:03:00.0"),
)
ONE_CARD = (
    ("enP9p3s0f0np0", "mlx5_0", "0009:03:00.0"),
    ("enP9p3s0f1np1", "mlx5_1", "0009:03:00.1"),
)
SHAPES = pytest.mark.parametrize("ports", [CARDS, ONE_CARD], ids=["two cards", "one card"])
TENTH = ("enP8p3s0f0np0", "mlx5_10", "0008:03:00.0")


def nodes(ports: Any, *ends: Any, wide: bool = False) -> list[dict[str, Any]]:
    """Head and worker; `ends` are (head's, worker's) links of each port in turn, the others are bare."""
    built = []
    for rank in (0, 1):
        links = {port[0]: end[rank] for port, end in zip(ports, ends, strict=False)}
        built.append(network((*ports, TENTH) if wide else ports, links))
    return built


def ends(subnet: int, **state: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return link(f"10.{subnet}.0.1/24", **state), link(f"10.{subnet}.0.2/24", **state)


def devices(ports: Any, rank: int, *subnets: int) -> list[Device]:
    """As a rank's report at a start."""
    made = [
        pair.device(hca, netdev, pci, f"10.{subnet}.0.{rank + 1}/24")
        for (netdev, hca, pci), subnet in zip(ports, subnets, strict=True)
    ]
    return [replace(device, speed=400000) for device in made]


@SHAPES
@pytest.mark.parametrize(("count", "used"), [("1", ["mlx5_0"]), ("2", ["mlx5_0", "mlx5_1"]), ("auto", None)])
def test_f07_station_rails_are_the_two_cables(ports: Any, count: str, used: list[str] | None) -> None:
    plans = plan(*nodes(ports, ends(1), ends(2)), rails=count)
    assert [port["hca"] for port in plans[0]["ports"]] == (used or ["mlx5_0", "mlx5_1"])
    assert written(plans) == [{}, {}]


@SHAPES
def test_f07_bare_station_cables_get_a_subnet_each(ports: Any) -> None:
    plans = plan(*nodes(ports))
    assert addresses(plans) == [
        ["192.168.177.1/24", "192.168.178.1/24"],
        ["192.168.177.2/24", "192.168.178.2/24"],
    ]


@SHAPES
def test_f07_the_one_validated_station_rail_is_enough(ports: Any) -> None:
    dark = (link(carrier=False), link(carrier=False))
    plans = plan(*nodes(ports, dark, ends(2)))
    assert rails(plans) == [(ports[1][0], ports[1][0])]
    assert plans[0]["summary"] == "1 rail: mlx5_1 <-> mlx5_1"
    assert "rails is 2, but only 1 pair" in refusal(*nodes(ports, dark, ends(2)), rails="2")


@SHAPES
def test_f16_nccl_ib_hca_takes_that_station_rail_though_another_name_begins_so(ports: Any) -> None:
    plans = plan(*nodes(ports, ends(1), ends(2), wide=True), rails="1", hcas=("mlx5_1", "mlx5_1"))
    assert rails(plans) == [(ports[1][0], ports[1][0])]
    bare = plan(*nodes(ports, wide=True), hcas=("mlx5_1", "mlx5_1"))
    assert (rails(bare), addresses(bare)) == (rails(plans), [["192.168.177.1/24"], ["192.168.177.2/24"]])


@SHAPES
def test_f16_the_start_takes_that_station_rail_too(ports: Any) -> None:
    wide = (*ports, TENTH)
    chosen = [select_devices(devices(wide, rank, 1, 2, 3), "mlx5_1", None, "x") for rank in (0, 1)]
    link_ = pair_rails(chosen, 1, 2, "nccl")
    assert (link_.summary(), link_.errors) == ("1 rail: mlx5_1 <-> mlx5_1", ())


@SHAPES
@pytest.mark.parametrize(("wanted", "count"), [(1, 1), (2, 2), ("auto", 2)])
def test_f07_the_start_pairs_station_rails(ports: Any, wanted: str | int, count: int) -> None:
    link_ = pair_rails([devices(ports, rank, 1, 2) for rank in (0, 1)], wanted, 2, "nccl")
    assert (len(link_.rails), link_.errors, link_.warnings) == (count, (), ())


@SHAPES
def test_f24_fabric_netdev_makes_the_main_station_rail(ports: Any) -> None:
    name = ports[1][0]
    plans = plan(*nodes(ports, ends(1), ends(2)), netdevs=(name, None))
    assert [port["hca"] for port in plans[1]["ports"]] == ["mlx5_1", "mlx5_0"]
    link_ = pair_rails([devices(ports, rank, 1, 2) for rank in (0, 1)], 2, 2, "nccl", (name, None))
    assert link_.summary() == "2 rails: mlx5_1,mlx5_0 <-> mlx5_1,mlx5_0"


def test_bare_station_cables_that_cross_become_two_rails() -> None:
    first, second = ONE_CARD[0][0], ONE_CARD[1][0]
    assert rails(plan(*nodes(ONE_CARD), netdevs=(first, second))) == [(first, second), (second, first)]


def test_a_station_cable_that_is_down_is_woken_for_the_second_rail() -> None:
    asleep = link(up=False, carrier=False)
    plans = plan(*nodes(ONE_CARD, ends(1), (asleep, asleep)))
    assert [own["bring_up"] for own in plans] == [[ONE_CARD[1][0]]] * 2


def test_f14_the_rail_profile_of_the_station_guide_is_kept() -> None:
    both = nodes(ONE_CARD, ends(1), (link(carrier=False), link(carrier=False)))
    for node in both:
        node["network"]["makers"]["enP9p3s0f0np0"] = maker(
            "NetworkManager", "cx8-rail1", "/etc/NetworkManager/system-connections/cx8-rail1.nmconnection"
        )
    plans = plan(*both, rails="1")
    assert written(plans) == [{}, {}]
    assert 'from NetworkManager profile "cx8-rail1"' in plans[0]["found"][0]


def test_f15_a_station_cable_to_another_network_is_not_completed_as_second_rail() -> None:
    storage = (link("10.7.0.5/24"), link())
    plans = plan(*nodes(ONE_CARD, ends(1), storage))
    assert (rails(plans), written(plans)) == ([("enP9p3s0f0np0", "enP9p3s0f0np0")], [{}, {}])
