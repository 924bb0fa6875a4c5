"""The GID table: the cases that were captured from a kernel (rdma_rxe), with mlx5's pair of types."""

from __future__ import annotations

from twinlab.machine.gids import V1, V2, Gid, disturbed, from_address, link_local, update

MAC = "4c:bb:47:00:01:10"
OWN = "fe80:0000:0000:0000:4ebb:47ff:fe00:0110"


def mapped(tail: str) -> str:
    return f"0000:0000:0000:0000:0000:ffff:{tail}"


def test_long_forms() -> None:
    assert link_local(MAC) == OWN
    assert from_address("192.168.177.11") == mapped("c0a8:b10b")
    assert from_address("fd00:7::1") == "fd00:0007:0000:0000:0000:0000:0000:0001"


def test_a_port_without_addresses_has_its_own_gid_twice() -> None:
    assert update({}, MAC, []) == {0: Gid(OWN, V1), 1: Gid(OWN, V2)}


def test_the_link_local_address_makes_no_second_entry() -> None:
    assert set(update({}, MAC, ["fe80::4ebb:47ff:fe00:110"])) == {0, 1}


def test_an_address_takes_slots_two_and_three() -> None:
    table = update({}, MAC, ["192.168.177.11"])
    assert table[2] == Gid(mapped("c0a8:b10b"), V1)
    assert table[3] == Gid(mapped("c0a8:b10b"), V2)


def test_removed_addresses_leave_holes_that_are_filled_lowest_first() -> None:
    table = update({}, MAC, ["192.168.177.11"])
    table = update(table, MAC, ["192.168.177.11", "10.5.5.5", "fd00:7::1"])
    table = update(table, MAC, ["192.168.177.11", "fd00:7::1"])
    assert sorted(table) == [0, 1, 2, 3, 6, 7]
    table = update(table, MAC, ["fd00:7::1", "192.168.177.11", "10.6.6.6"])
    assert sorted(table) == list(range(8))
    assert table[5] == Gid(mapped("0a06:0606"), V2)
    assert table[7].value == from_address("fd00:7::1")


def test_an_address_that_comes_back_may_get_another_index() -> None:
    table = update({}, MAC, ["10.0.0.1", "10.0.0.2"])
    table = update(update(table, MAC, ["10.0.0.2"]), MAC, ["10.0.0.2", "10.0.0.3", "10.0.0.1"])
    assert table[3].value == from_address("10.0.0.3")
    assert table[7].value == from_address("10.0.0.1")


def test_ipv4_entries_that_moved_leave_holes_and_the_others_where_they_are() -> None:
    table = update({}, MAC, ["fd00:7::1", "192.168.177.11"])
    moved = disturbed(table, shift=3, v1_only=False)
    assert sorted(moved) == [0, 1, 2, 3, 7, 8]
    assert moved[8] == Gid(mapped("c0a8:b10b"), V2)
    assert moved[3].value == from_address("fd00:7::1")


def test_entries_for_v1_only_are_those_of_ipv4() -> None:
    table = disturbed(update({}, MAC, ["192.168.177.11"]), shift=0, v1_only=True)
    assert table == {0: Gid(OWN, V1), 1: Gid(OWN, V2), 2: Gid(mapped("c0a8:b10b"), V1)}
