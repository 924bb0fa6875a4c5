"""Under a running rank nothing is written: what the plan says instead, and what the ranks are told of it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.filter.nodes import FilterModule
from ansible_collections.twinserve.pair.plugins.module_utils import gids
from ansible_collections.twinserve.pair.plugins.module_utils.fabric_ports import NETPLAN_FILE
from ansible_collections.twinserve.pair.plugins.module_utils.gids import Gid
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device
from fabric_plans import addresses, plan, refusal, written
from probes import HEAD_PORTS, NAMES, WORKER_PORTS, head, link, maker, worker

MAIN, TWIN = "enp1s0f1np1", "enP2p1s0f1np1"
PEER, PEER_TWIN = "enp1s0f0np0", "enP2p1s0f0np0"
NOTHING: list[dict[str, tuple[str, int]]] = [{}, {}]
RUNS = {"twinserve-rank.service": {"ActiveState": "active"}}
NEXT = "which is not written under a running rank: run playbooks/stop.yml, then playbooks/fabric.yml"
BARE_TWIN = (
    "rail 1 roceP2p1s0f1 (192.168.178.1, MTU 9000) <-> roceP2p1s0f0 (-, MTU 9000) "
    f"does not reach the peer: not used: spark-b {PEER_TWIN} lacks 192.168.178.2/24, {NEXT}"
)


Links = dict[str, Any]


def serving(changes: Links | None = None, runs: int | None = 0, by: str = "ours") -> list[dict[str, Any]]:
    """Both nodes with two rails of ours (or of others), links changed by netdev; the rank `runs` runs."""
    ends = {
        MAIN: link("192.168.177.1/24"),
        TWIN: link("192.168.178.1/24"),
        PEER: link("192.168.177.2/24"),
        PEER_TWIN: link("192.168.178.2/24"),
    } | (changes or {})
    nodes = [
        head(**{name: ends[name] for name in (MAIN, TWIN)}),
        worker(**{name: ends[name] for name in (PEER, PEER_TWIN)}),
    ]
    for rank, node in enumerate(nodes):
        names = [netdev for netdev, _, _ in (HEAD_PORTS, WORKER_PORTS)[rank]]
        lines = "".join(f"    {netdev}:\n      mtu: 9000\n" for netdev in names)
        if by == "ours":
            node["network"]["netplan"][NETPLAN_FILE] = f"network:\n  ethernets:\n{lines}"
        node["services"] = RUNS if rank == runs else {}
    return nodes


@pytest.mark.parametrize("runs", [0, 1])
@pytest.mark.parametrize("rails", ["auto", "2"])
@pytest.mark.parametrize("by", ["ours", "others"])
def test_f09_a_second_rail_that_lost_its_address_waits_until_no_rank_runs(
    runs: int, rails: str, by: str
) -> None:
    plans = plan(*serving({PEER_TWIN: link()}, runs, by), rails=rails)
    assert (addresses(plans), written(plans)) == ([["192.168.177.1/24"], ["192.168.177.2/24"]], NOTHING)
    assert plans[0]["warnings"] == [BARE_TWIN]
    assert [own["waiting"] for own in plans] == [
        [{"hca": "roceP2p1s0f1", "address": "192.168.178.1/24"}],
        [{"hca": "roceP2p1s0f0", "address": "192.168.178.2/24"}],
    ]
    stopped = plan(*serving({PEER_TWIN: link()}, None, by), rails=rails)
    assert written(stopped)[1][PEER_TWIN] == ("192.168.178.2/24", 9000)
    assert [own["waiting"] for own in stopped] == [[], []]


def test_f11_a_second_rail_that_lost_its_mtu_waits_too() -> None:
    plans = plan(*serving({PEER_TWIN: link("192.168.178.2/24", mtu=1500)}))
    assert (len(plans[0]["ports"]), written(plans)) == (1, NOTHING)
    assert plans[0]["warnings"] == [
        "rail 1 roceP2p1s0f1 (192.168.178.1, MTU 9000) <-> roceP2p1s0f0 (192.168.178.2, MTU 1500) "
        f"does not reach the peer: not used: spark-b {PEER_TWIN} lacks MTU 9000, {NEXT}"
    ]


@pytest.mark.parametrize(
    ("changes", "lacks"),
    [
        ({PEER: link()}, f"spark-b {PEER} lacks 192.168.177.2/24"),
        ({MAIN: link("192.168.177.1/24", mtu=1500)}, f"spark-a {MAIN} lacks MTU 9000"),
        ({PEER: link(mtu=1500)}, f"spark-b {PEER} lacks 192.168.177.2/24 and MTU 9000"),
        (
            {MAIN: link(), PEER: link()},
            f"spark-a {MAIN} lacks 192.168.177.1/24, spark-b {PEER} lacks 192.168.177.2/24",
        ),
    ],
)
def test_f09_a_main_rail_that_would_need_a_change_is_refused_with_what_is_missing(
    changes: dict[str, Any], lacks: str
) -> None:
    assert refusal(*serving(changes)) == f"rail 0: {lacks}, {NEXT}"
    assert written(plan(*serving(changes, runs=None))) != NOTHING


def test_f12_what_is_set_by_hand_is_not_written_down_under_a_running_rank() -> None:
    nodes = serving(by="others")
    nodes[1]["network"]["makers"][PEER] = maker(lasting=False, by_hand=("192.168.177.2/24",))
    plans = plan(*nodes, rails="1", manage=True)
    assert (len(plans[0]["ports"]), written(plans)) == (1, NOTHING)
    assert plans[0]["warnings"] == [
        f"spark-b {PEER} has 192.168.177.2/24 set by hand: it is gone after a reboot; "
        "playbooks/stop.yml, then playbooks/fabric.yml make it last"
    ]
    assert written(plan(*serving(runs=None), rails="1", manage=True)) == NOTHING


def test_f12_link_local_addresses_are_not_replaced_under_a_running_rank() -> None:
    ends = {MAIN: link("169.254.7.9/16"), PEER: link("169.254.201.3/16"), TWIN: link(), PEER_TWIN: link()}
    plans = plan(*serving(ends, by="others"), rails="1")
    assert (addresses(plans), written(plans)) == ([["169.254.7.9/16"], ["169.254.201.3/16"]], NOTHING)
    assert plans[0]["warnings"] == ["rail 0 uses a link-local address that changes at reboot"]
    assert written(plan(*serving(ends, None, "others"), rails="1")) != NOTHING


def expected(nodes: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """What is rendered for each rank of the link."""
    filters = FilterModule().filters()
    own = [
        {
            "rails": "auto",
            "fabric_manage": "auto",
            "fabric_netdev": None,
            "fabric_peer": None,
            "nccl_ib_hca": None,
            "fabric_mtu": 9000,
            "fabric_subnets": ["192.168.177.0/24", "192.168.178.0/24"],
        }
    ] * 2
    plans = filters["fabric_plan"](nodes, NAMES, own)
    return [one["expected_link"] for one in filters["rank_inputs"](nodes, NAMES, ("a", "b"), own, plans, {})]


def rendered(nodes: list[dict[str, Any]], was: list[list[dict[str, Any]]] | None = None) -> None:
    """Give the nodes what rendering looks at: GID tables, the model cache, and the plans written before."""
    for rank, node in enumerate(nodes):
        links = node["network"]["links"]
        node["devices"] = [
            Device(
                *(hca, netdev, pci, "ACTIVE", "up", True, 9000, 200000),
                tuple(links[netdev]["addresses"]),
                tuple(
                    Gid(3, gids.mapped(one.split("/")[0]), "RoCE v2") for one in links[netdev]["addresses"]
                ),
            ).as_dict()
            for netdev, hca, pci in (HEAD_PORTS, WORKER_PORTS)[rank]
        ]
        node |= {"hf": {"home": "/hf"}, "kernel_cache": "/k"}
        if was:
            node["rank_plan"] = {"expected_link": was[rank]}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({PEER_TWIN: link()}, id="the second rail lost its address"),
        pytest.param({PEER: link()}, id="the main rail did"),
        pytest.param({PEER_TWIN: link("192.168.178.2/24", up=False, carrier=False)}, id="a port is down"),
    ],
)
def test_what_a_serving_pair_was_rendered_with_stays(changes: dict[str, Any]) -> None:
    whole = serving(runs=None)
    rendered(whole)
    was = expected(whole)
    assert [[one["gid_index"] for one in own] for own in was] == [[3, 3], [3, 3]]
    nodes = serving(changes)
    rendered(nodes, was)
    assert expected(nodes) == was


def test_rails_that_never_were_rendered_are_not_expected_while_they_wait() -> None:
    whole = serving(runs=None)
    rendered(whole)
    was = [own[:1] for own in expected(whole)]
    nodes = serving({TWIN: link(), PEER_TWIN: link()})
    rendered(nodes, was)
    assert expected(nodes) == was
