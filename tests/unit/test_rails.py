"""Pairing of the nodes' devices into rails: the fabric cases, by their ids."""

from __future__ import annotations

from typing import Any

import fake_pair as pair
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.gids import Gid, mapped
from ansible_collections.twinserve.pair.plugins.module_utils.link import Link
from ansible_collections.twinserve.pair.plugins.module_utils.rails import (
    drift,
    pair_rails,
    without_rails,
)
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device


def paired(head: list[Device], worker: list[Device], wanted: str | int = "auto", comm: str = "roce") -> Link:
    return pair_rails([head, worker], wanted, 2, comm)


def hcas(link: Link, rank: int) -> list[str]:
    return [end["hca"] for end in link.of_rank(rank)]


def test_f01_each_rank_has_its_own_index() -> None:
    link = paired(pair.head(3, 3), pair.worker(5, 5))
    assert [end["gid_index"] for end in link.of_rank(0)] == [3, 3]
    assert [end["gid_index"] for end in link.of_rank(1)] == [5, 5]
    assert link.master == "198.51.100.1"
    assert not link.errors


def test_f01_no_v2_gid_of_the_own_address() -> None:
    link = paired(pair.head(), pair.worker(rocep1s0f0={"gids": pair.gids(None)}))
    assert link.errors == (
        "rank 1: rocep1s0f0 has no RoCE v2 GID for 198.51.100.2 (found: 0 link-local v1, 1 link-local v2)",
    )


@pytest.mark.parametrize(
    ("comm", "rails", "warnings"),
    [
        ("roce", 1, ("rank 0: roceP2p1s0f1 has its GID at 5, rocep1s0f1 at 3; using one rail",)),
        ("nccl", 2, ()),
    ],
)
def test_f03_twin_has_another_index(comm: str, rails: int, warnings: tuple[str, ...]) -> None:
    link = paired(pair.head(3, 5), pair.worker(), comm=comm)
    assert (len(link.rails), link.warnings, link.errors) == (rails, warnings, ())


def test_f03_twin_with_a_link_local_v2_entry_only() -> None:
    table = (Gid(3, pair.LINK_LOCAL, pair.V2), Gid(5, mapped("203.0.113.1"), pair.V2))
    link = paired(pair.head(roceP2p1s0f1={"gids": table}), pair.worker(), comm="nccl")
    assert [end["gid_index"] for end in link.of_rank(0)] == [3, 5]


def test_f03_two_rails_asked_for_and_indexes_differ() -> None:
    link = paired(pair.head(3, 5), pair.worker(), wanted=2)
    assert link.errors[0].startswith(
        "rails is 2, but only 1 can be used: rank 0: roceP2p1s0f1 has its GID at 5"
    )


def test_f05_lan_ports_are_no_rails() -> None:
    bare = [pair.down("rocep1s0f0", "enp1s0f0np0", "0000:01:00.0")]
    link = paired(pair.head(), bare)
    assert link.errors[0].startswith("no CX7 subnet shared by head and worker (head: ")
    assert "worker: rocep1s0f0 no address down" in link.errors[0]


def test_f07_both_twins_main_rail_first_and_in_the_same_order() -> None:
    link = paired(list(reversed(pair.head())), pair.worker())
    assert link.summary() == "2 rails: rocep1s0f1,roceP2p1s0f1 <-> rocep1s0f0,roceP2p1s0f0"
    assert [end["netdev"] for end in link.of_rank(1)] == ["enp1s0f0np0", "enP2p1s0f0np0"]


def test_f07_twin_wins_over_a_second_cable() -> None:
    head = [*pair.head(), pair.device("rocep1s0f0", "enp1s0f0np0", "0000:01:00.2", "192.0.2.1/30")]
    worker = [*pair.worker(), pair.device("rocep1s0f2", "enp1s0f2np2", "0000:01:00.2", "192.0.2.2/30")]
    assert hcas(paired(head, worker), 0) == ["rocep1s0f1", "roceP2p1s0f1"]


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        pytest.param({"addresses": ()}, "(-, MTU 9000)", id="no-address"),
        pytest.param({"addresses": ("192.0.2.130/25",)}, "(192.0.2.130, MTU 9000)", id="other-subnet"),
        pytest.param({"mtu": 1500}, "(203.0.113.2, MTU 1500)", id="other-mtu"),
        pytest.param({"state": "DOWN", "operstate": "down"}, "(203.0.113.2, MTU 9000, down)", id="down"),
    ],
)
def test_f09_twin_that_cannot_reach_is_dropped_with_the_reason(change: dict[str, Any], shown: str) -> None:
    ends = f"roceP2p1s0f1 (203.0.113.1, MTU 9000) <-> roceP2p1s0f0 {shown}"
    reason = f"rail 1 {ends} does not reach the peer: not used"
    link = paired(pair.head(), pair.worker(roceP2p1s0f0=change))
    assert (len(link.rails), link.warnings, link.errors) == (1, (reason,), ())
    strict = paired(pair.head(), pair.worker(roceP2p1s0f0=change), wanted=2)
    assert strict.errors == (f"rails is 2, but only 1 can be used: {reason}",)


def test_f09_one_rail_asked_for_says_nothing_about_the_twin() -> None:
    link = paired(pair.head(), pair.worker(roceP2p1s0f0={"addresses": ()}), wanted=1)
    assert (len(link.rails), link.warnings) == (1, ())


def test_f09_failed_ping_drops_the_twin_and_a_dead_main_rail_is_an_error() -> None:
    link = paired(pair.head(), pair.worker())
    fewer = without_rails(link, {1: "no answer"}, "auto", 2)
    assert fewer.summary() == "1 rail: rocep1s0f1 <-> rocep1s0f0"
    assert fewer.warnings == (
        "rail 1 roceP2p1s0f1 (203.0.113.1, MTU 9000) <-> roceP2p1s0f0 (203.0.113.2, MTU 9000)"
        " does not reach the peer: not used",
    )
    assert without_rails(link, {1: "no answer"}, 2, 2).errors
    assert without_rails(link, {0: "no answer"}, "auto", 2).errors == (
        "rail 0 rocep1s0f1 (198.51.100.1, MTU 9000) <-> rocep1s0f0 (198.51.100.2, MTU 9000)"
        " does not reach the peer: no answer",
    )


def test_f10_twins_in_one_subnet_pair_in_pci_order() -> None:
    same: dict[str, Any] = {"addresses": ("198.51.100.101/24",), "gids": pair.gids("198.51.100.101")}
    other: dict[str, Any] = {"addresses": ("198.51.100.102/24",), "gids": pair.gids("198.51.100.102")}
    link = paired(pair.head(roceP2p1s0f1=same), pair.worker(roceP2p1s0f0=other))
    assert link.summary() == "2 rails: rocep1s0f1,roceP2p1s0f1 <-> rocep1s0f0,roceP2p1s0f0"


@pytest.mark.parametrize("mains", [("enP2p1s0f1np1", None), (None, "enP2p1s0f0np0")])
def test_f24_a_port_that_is_set_makes_the_main_rail_though_its_twin_comes_first(
    mains: tuple[str | None, str | None],
) -> None:
    link = pair_rails([pair.head(), pair.worker()], "auto", 2, "roce", mains)
    assert link.summary() == "2 rails: roceP2p1s0f1,rocep1s0f1 <-> roceP2p1s0f0,rocep1s0f0"


def test_f11_main_rail_with_two_mtus() -> None:
    link = paired(pair.head(), pair.worker(rocep1s0f0={"mtu": 1500}))
    assert link.errors == ("rail 0 MTU differs: head 9000, worker 1500; set both to the same value",)


def test_f12_link_local_addresses_are_the_last_choice_and_said() -> None:
    link = paired(
        [pair.device("rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", "169.254.7.9/16")],
        [pair.device("rocep1s0f0", "enp1s0f0np0", "0000:01:00.0", "169.254.201.3/16")],
    )
    assert link.warnings[0] == "rail 0 uses a link-local address that changes at reboot"
    assert link.master == "169.254.7.9"


def test_f15_live_port_to_another_network_stays_out() -> None:
    foreign = pair.device("rocep1s0f0", "enp1s0f0np0", "0000:01:00.0", "192.0.2.140/30")
    link = paired([foreign, *pair.head()[:2]], pair.worker())
    assert (hcas(link, 0), hcas(link, 1)) == (["rocep1s0f1", "roceP2p1s0f1"], ["rocep1s0f0", "roceP2p1s0f0"])


def test_neighbours_must_see_each_other_both_ways() -> None:
    wide: dict[str, Any] = {"addresses": ("198.51.101.2/16",), "gids": pair.gids("198.51.101.2")}
    link = paired(pair.head(), pair.worker(rocep1s0f0=wide))
    assert hcas(link, 0) == ["roceP2p1s0f1"]


def test_dead_port_that_kept_its_address_is_no_rail() -> None:
    link = paired(pair.head(rocep1s0f1={"carrier": False}), pair.worker())
    assert hcas(link, 0) == ["roceP2p1s0f1"]


def test_rail_1_alone_becomes_the_main_rail() -> None:
    gone: dict[str, Any] = {"state": "DOWN", "operstate": "down", "carrier": False, "addresses": ()}
    link = paired(pair.head(rocep1s0f1=gone), pair.worker(rocep1s0f0=gone))
    assert link.master == "203.0.113.1"
    assert link.summary() == "1 rail: roceP2p1s0f1 <-> roceP2p1s0f0"


GONE = "RoCE device of enp1s0f1np1 is gone: look at rdma link; if it stays away, power-cycle the node"


@pytest.mark.parametrize(
    ("devices", "notes"),
    [
        (pair.head(3), []),
        (pair.head(4), ["GID index of rocep1s0f1 changed 3 -> 4 since the unit was rendered"]),
        (pair.head(rocep1s0f1={"addresses": ()}), ["enp1s0f1np1 lost 198.51.100.1; run the fabric play"]),
        (pair.head()[1:], [GONE]),
    ],
)
def test_f02_f12_drift_is_named(devices: list[Device], notes: list[str]) -> None:
    expected = [{"netdev": "enp1s0f1np1", "hca": "rocep1s0f1", "address": "198.51.100.1", "gid_index": 3}]
    assert drift(expected, devices) == notes
