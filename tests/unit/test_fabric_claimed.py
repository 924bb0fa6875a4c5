"""Ports that are somebody's without an IPv4 address: left alone, told, and no rail while others are there."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.fabric_plan import Wish, plan_all
from fabric_plans import addresses, plan, rails, refusal, written
from probes import HEAD_PORTS, NAMES, head, link, maker, network, worker
from test_fabric_manage import ours

MAIN, TWIN = "enp1s0f1np1", "enP2p1s0f1np1"
PEER, PEER_TWIN = "enp1s0f0np0", "enP2p1s0f0np0"
MEND = "set fabric_manage: true to let Twinserve mend it"
BOUND = [
    pytest.param({"master": "br0"}, "is part of br0", id="bridge"),
    pytest.param({"carries": ["rail.7", "rail.8"]}, "carries rail.7, rail.8", id="VLANs"),
]
BY_V6 = pytest.param({"ipv6": ["fd00:77::1/64"]}, "has fd00:77::1/64", id="IPv6")


def heads(change: dict[str, Any], *netdevs: str) -> dict[str, Any]:
    """The head with those ports bare but for that."""
    return head(**{netdev: link() | change for netdev in netdevs})


@pytest.mark.parametrize(("change", "why"), [*BOUND, BY_V6])
def test_f15_a_port_that_is_somebodys_is_left_alone_and_its_free_twin_becomes_the_rail(
    change: dict[str, Any], why: str
) -> None:
    plans = plan(heads(change, MAIN), worker())
    assert rails(plans) == [(TWIN, PEER_TWIN)]
    assert MAIN not in written(plans)[0]
    assert plans[1]["found"] == [f"spark-a {MAIN} {why}: no rail"]
    assert refusal(heads(change, MAIN), worker(), rails="2").endswith(
        f"spark-a {MAIN} {why}: no rail); use rails: auto"
    )


@pytest.mark.parametrize(("change", "why"), BOUND)
@pytest.mark.parametrize("manage", ["auto", True])
def test_f15_what_another_port_lives_on_is_never_written(
    manage: bool | str, change: dict[str, Any], why: str
) -> None:
    nodes = heads(change, MAIN, TWIN), worker()
    said = f"{MAIN} {why}; {TWIN} {why}; take it out of there, or use another cable"
    assert refusal(*nodes, manage=manage) == f"spark-a: no RDMA port is free for a rail: {said}"
    named = {"manage": manage, "netdevs": (MAIN, None)}
    assert refusal(heads(change, MAIN), worker(), **named) == (
        f"fabric_netdev on spark-a: no RDMA port is free for a rail: {MAIN} {why}; "
        "take it out of there, or use another cable"
    )


@pytest.mark.parametrize(("change", "why"), BOUND)
def test_f07_a_bound_port_with_an_address_is_a_rail_that_is_kept_and_not_mended(
    change: dict[str, Any], why: str
) -> None:
    one = head(**{MAIN: link("198.51.100.1/24", mtu=1500) | change})
    good = worker(**{PEER: link("198.51.100.2/24", mtu=1500)})
    assert written(plan(one, good, rails="1")) == [{}, {}]
    other = worker(**{PEER: link("203.0.113.2/24", mtu=1500)})
    assert refusal(one, other, rails="1", manage=True) == (
        f"spark-a {MAIN} {why}, so it is not given 192.168.177.1/24 with MTU 1500; mend it there"
    )


def test_f12_a_link_with_ipv6_only_is_refused_and_mended_on_request() -> None:
    v6 = link() | {"ipv6": ["fd00:77::1/64"]}
    nodes = head(**{MAIN: v6, TWIN: v6}), worker(**{PEER: v6, PEER_TWIN: v6})
    assert refusal(*nodes) == (
        f"spark-a: no RDMA port is free for a rail: {MAIN} has fd00:77::1/64; {TWIN} has fd00:77::1/64; "
        f"give both ends an IPv4 address, or {MEND}"
    )
    plans = plan(*nodes, manage=True)
    assert addresses(plans)[0] == ["192.168.177.1/24", "192.168.178.1/24"]


OWNERS = ("networkd", "10-netplan-x.network", "/etc/netplan/40-cx7.yaml")
AUTOMATIC = ("NetworkManager", "Wired connection 3", "/run/NetworkManager/system-connections/w3.nmconnection")


@pytest.mark.parametrize(
    ("made", "there", "free"),
    [
        pytest.param(maker(*OWNERS), link(), False, id="DHCP without a lease"),
        pytest.param(maker("NetworkManager", "cx7", "/etc/NM/cx7"), link(), False, id="profile of the owner"),
        pytest.param(maker(*OWNERS, link_local=True), link(), True, id="only link-local, not there yet"),
        pytest.param(maker(*OWNERS), link("169.254.7.9/16"), True, id="link-local"),
        pytest.param(maker(*AUTOMATIC, lasting=False), link(), True, id="automatic profile"),
        pytest.param(maker("networkd", "x", "/usr/lib/systemd/network/x"), link(), True, id="shipped"),
        pytest.param(maker("NetworkManager", f"twinserve-{MAIN}", "/etc/NM/t"), link(), True, id="ours"),
    ],
)
def test_f12_a_port_of_an_owners_file_is_not_bare(
    made: dict[str, Any], there: dict[str, Any], free: bool
) -> None:
    one = head(**{MAIN: there})
    one["network"]["makers"][MAIN] = made
    plans = plan(one, worker())
    assert rails(plans)[0] == ((MAIN, PEER) if free else (TWIN, PEER_TWIN))
    assert (f"spark-a {MAIN} is in {made['files'][0]}: no rail" in plans[0]["found"]) is not free
    assert rails(plan(one, worker(), manage=True))[0] == (MAIN, PEER)


def test_a_port_that_is_somebodys_is_not_set_up() -> None:
    asleep = link(up=False, carrier=False)
    one = head(**{MAIN: asleep | {"master": "br0"}, TWIN: asleep})
    assert [own["bring_up"] for own in plan(one, worker())] == [[TWIN], []]


# The cable of HEAD_PORTS leads to an office network on both nodes; the other one is direct.
DIRECT = (
    ("enp1s0f0np0", "rocep1s0f0", "0000:01:00.0"),
    ("enP2p1s0f0np0", "roceP2p1s0f0", "0002:01:00.0"),
)
OFFICE = ("192.0.2.21", "192.0.2.22")


def by_office(
    direct: bool = True, mtu: int = 9000, links: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Both nodes, reached by an RDMA port; `direct` says whether another cable is in."""
    bare = {port[0]: link(carrier=direct) for port in DIRECT}
    ends = [
        bare | {MAIN: link(f"{address}/24", mtu=size)} | (links or {})
        for address, size in zip(OFFICE, (9000, mtu), strict=True)
    ]
    return [network((*DIRECT, *HEAD_PORTS), own) for own in ends]


def planned(nodes: list[dict[str, Any]], **wish: Any) -> list[dict[str, Any]]:
    plans = plan_all(nodes, NAMES, Wish(**wish), OFFICE)
    assert plans[0]["error"] == ""
    return plans


@pytest.mark.parametrize("manage", ["auto", True])
def test_f05_a_network_by_which_nodes_are_reached_gives_way_to_the_direct_cable(manage: bool | str) -> None:
    plans = planned(by_office(mtu=1500), manage=manage)
    assert rails(plans) == [(port[0], port[0]) for port in DIRECT]
    assert MAIN not in written(plans)[0]
    assert [own["apart"] for own in plans] == [["rocep1s0f1", "roceP2p1s0f1"]] * 2
    assert plans[0]["found"] == [
        f"spark-a is reached by {MAIN} (192.0.2.21): no rail; fabric_netdev: {MAIN} makes it one",
        f"spark-b is reached by {MAIN} (192.0.2.22): no rail; fabric_netdev: {MAIN} makes it one",
    ]


@pytest.mark.parametrize(
    "named",
    [
        {"netdevs": (MAIN, None)},
        {"peers": (OFFICE[1], None)},
        {"hcas": ("rocep1s0f1,roceP2p1s0f1", "rocep1s0f1,roceP2p1s0f1")},
    ],
)
def test_f05_it_is_a_rail_where_a_setting_names_it(named: dict[str, Any]) -> None:
    assert rails(planned(by_office(), **named))[0] == (MAIN, MAIN)


def test_f05_it_stays_a_rail_where_we_made_it_one() -> None:
    one, other = by_office()
    assert rails(planned([ours(one, MAIN), ours(other, MAIN)]))[0] == (MAIN, MAIN)


def test_f05_it_is_the_rail_where_there_is_no_other_and_that_is_told() -> None:
    plans = planned(by_office(direct=False))
    assert rails(plans) == [(MAIN, MAIN), (TWIN, TWIN)]
    assert [own["apart"] for own in plans] == [[], []]
    assert addresses(plans)[0][0] == "192.0.2.21/24"
    assert plans[0]["found"][-2:] == [
        f"spark-a is reached by {MAIN} (192.0.2.21), which is rail 0",
        f"spark-b is reached by {MAIN} (192.0.2.22), which is rail 0",
    ]
    one_node = [by_office()[0], by_office(direct=False)[1]]
    assert rails(planned(one_node))[0] == (MAIN, MAIN)


def test_f05_a_direct_cable_that_is_down_is_woken_first() -> None:
    nodes = by_office(links={port[0]: link(up=False, carrier=False) for port in DIRECT})
    assert [own["bring_up"] for own in planned(nodes)] == [[port[0] for port in DIRECT]] * 2
    nodes[0]["services"] = {"twinserve-rank.service": {"ActiveState": "active"}}
    assert [own["bring_up"] for own in planned(nodes, rails="1")] == [[], []]
