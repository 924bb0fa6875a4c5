"""What is read from real RoCE devices in the states that their ports can be in."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.gids import describe, find_v2
from ansible_collections.twinserve.pair.plugins.module_utils.rails import pair_rails
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device
from captured import TREES, plant

FIRST, SECOND = "rocep1s0f0", "roceP2p1s0f0"
OWN = "198.18.101.1"
NAMES = sorted((file.stem for file in TREES.glob("*.txt")), key=lambda name: int(name.partition("-")[0]))


Node = Callable[[str], dict[str, Device]]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """Devices of a node in a captured state, by name; each state is laid out and read once."""

    @cache
    def read(name: str) -> dict[str, Device]:
        return {one.hca: one for one in plant(name, tmp_path_factory.mktemp(name)).devices()}

    return read


def index(device: Device, address: str) -> int | None:
    """Where the address is in the device's table."""
    found = find_v2(device.gids, address)
    return found.index if found else None


@pytest.mark.parametrize("name", NAMES)
def test_both_devices_are_found_with_their_ports_in_every_state(name: str, node: Node) -> None:
    found = node(name).values()
    assert [(one.hca, one.netdev) for one in found] == [(FIRST, "enp1s0f0np0"), (SECOND, "enP2p1s0f0np0")]


def test_f01_index_is_found_where_the_driver_has_no_v1_entries(node: Node) -> None:
    assert index(node("3-addressed")[FIRST], OWN) == 1


@pytest.mark.parametrize("name", ["1-bare", "2-up"])
def test_f01_link_local_entry_alone_is_not_enough(name: str, node: Node) -> None:
    device = node(name)[FIRST]
    assert describe(device.gids) == "0 link-local v2"
    assert index(device, OWN) is None


def test_f02_index_moves_when_another_address_took_its_slot(node: Node) -> None:
    states = ("3-addressed", "7-reused", "8-moved")
    assert [index(node(name)[FIRST], OWN) for name in states] == [1, 1, 4]


def test_slot_of_an_address_that_went_is_a_hole_that_hides_nothing(node: Node) -> None:
    device = node("6-hole")[FIRST]
    assert [entry.index for entry in device.gids] == [0, 1, 3]
    assert index(device, "198.18.103.1") is None


def test_reused_slot_is_no_longer_the_earlier_address(node: Node) -> None:
    device = node("7-reused")[FIRST]
    assert index(device, "198.18.104.1") == 2
    assert index(device, "198.18.103.1") is None


def test_each_of_several_addresses_has_its_own_entry(node: Node) -> None:
    device = node("8-moved")[FIRST]
    places = {address: index(device, address.partition("/")[0]) for address in device.addresses}
    assert places == {"198.18.104.1/24": 2, "198.18.105.1/24": 1, "198.18.101.1/24": 4}


def test_vlan_has_entries_in_its_ports_table_and_does_not_become_the_port(node: Node) -> None:
    gids = node("9-vlan")[FIRST].gids
    assert [entry.index for entry in gids if entry.netdev == "enp1s0f0np0.7"] == [5, 6]
    # The VLAN's link-local entry has the same value as the port's own.
    assert gids[0].gid == gids[5].gid


@pytest.mark.parametrize("name", ["10-unplugged", "11-down"])
def test_device_without_carrier_is_down_and_keeps_its_entries(name: str, node: Node) -> None:
    device = node(name)[FIRST]
    assert (device.state, device.up) == ("DOWN", False)
    assert index(device, OWN) == 4


def test_unknown_speed_is_none(node: Node) -> None:
    assert node("3-addressed")[FIRST].speed is None


def test_two_nodes_pair_by_subnet_with_each_ones_own_index(node: Node) -> None:
    head = list(node("8-moved").values())
    worker = _peer(list(node("3-addressed").values()))
    link = pair_rails([head, worker], "auto", 2, "nccl")
    assert link.errors == ()
    assert [[end.gid_index for end in rail] for rail in link.rails] == [[4, 1], [1, 1]]
    assert link.master == OWN


def _peer(devices: list[Device]) -> list[Device]:
    """The same node as the other end of the cables: host 2 in each subnet."""
    return [
        Device.from_json(
            one.as_dict()
            | {
                "addresses": [address.replace(".1/", ".2/") for address in one.addresses],
                "gids": [
                    entry.as_dict() | {"gid": f"{entry.gid[:-2]}02"}
                    if ":ffff:" in entry.gid
                    else entry.as_dict()
                    for entry in one.gids
                ],
            }
        )
        for one in devices
    ]
