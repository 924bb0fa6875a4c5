"""Which ports become rails, and which addresses they are given: from the probes of both nodes."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.twinserve.pair.plugins.module_utils.fabric_ports import NETPLAN_FILE
from fabric_plans import addresses, plan, rails, refusal
from probes import HEAD_PORTS, head, link, maker, network, worker

ADDRESSED_HEAD = {"enp1s0f1np1": link("198.51.100.1/24"), "enP2p1s0f1np1": link("203.0.113.1/24")}
ADDRESSED_WORKER = {"enp1s0f0np0": link("198.51.100.2/24"), "enP2p1s0f0np0": link("203.0.113.2/24")}


def test_f07_twins_in_their_own_subnets_are_two_rails_and_stay_as_they_are() -> None:
    plans = plan(head(**ADDRESSED_HEAD), worker(**ADDRESSED_WORKER))
    assert rails(plans) == [("enp1s0f1np1", "enp1s0f0np0"), ("enP2p1s0f1np1", "enP2p1s0f0np0")]
    assert plans[0]["summary"] == "2 rails: rocep1s0f1,roceP2p1s0f1 <-> rocep1s0f0,roceP2p1s0f0"
    assert [own["netplan"] for own in plans] == [None, None]
    assert [port["peers"] for port in plans[0]["ports"]] == [["198.51.100.2"], ["203.0.113.2"]]
    assert all(port["kept"] for own in plans for port in own["ports"])


def test_bare_ports_get_one_subnet_a_rail_and_the_rank_as_host_number() -> None:
    plans = plan(head(), worker())
    assert rails(plans) == [("enp1s0f1np1", "enp1s0f0np0"), ("enP2p1s0f1np1", "enP2p1s0f0np0")]
    assert addresses(plans) == [
        ["192.168.177.1/24", "192.168.178.1/24"],
        ["192.168.177.2/24", "192.168.178.2/24"],
    ]
    written = yaml.safe_load(plans[1]["netplan"])["network"]["ethernets"]
    assert written == {
        "enp1s0f0np0": {"renderer": "networkd", "dhcp4": False, "link-local": [], "mtu": 9000}
        | {"addresses": ["192.168.177.2/24"]},
        "enP2p1s0f0np0": {"renderer": "networkd", "dhcp4": False, "link-local": [], "mtu": 9000}
        | {"addresses": ["192.168.178.2/24"]},
    }


def test_what_was_given_is_what_the_next_run_keeps() -> None:
    given = plan(head(), worker())
    nodes = []
    for build, own in zip((head, worker), given, strict=True):
        node = build(**{port["netdev"]: link(port["address"], mtu=port["mtu"]) for port in own["ports"]})
        node["network"]["netplan"] = {NETPLAN_FILE: own["netplan"]}
        nodes.append(node)
    again = plan(*nodes)
    assert addresses(again) == addresses(given)
    assert [own["netplan"] for own in again] == [None, None]


def test_f05_a_lan_without_rdma_is_never_a_rail() -> None:
    office = {"enP7s7": link("192.0.2.12/24")}
    plans = plan(head(**ADDRESSED_HEAD, **office), worker(**ADDRESSED_WORKER, **office))
    assert addresses(plans)[1] == ["198.51.100.2/24", "203.0.113.2/24"]
    lan_only = network((("enP7s7", "rocep0", "0000:00:00.0"),), {})
    lan_only["devices"] = []
    assert refusal(head(), lan_only).startswith("spark-b has no RDMA network device")


def test_f10_twins_in_one_subnet_are_accepted_when_others_configured_them() -> None:
    one = head(enp1s0f1np1=link("198.51.100.1/24"), enP2p1s0f1np1=link("198.51.100.101/24"))
    other = worker(enp1s0f0np0=link("198.51.100.2/24"), enP2p1s0f0np0=link("198.51.100.102/24"))
    plans = plan(one, other)
    assert addresses(plans) == [
        ["198.51.100.1/24", "198.51.100.101/24"],
        ["198.51.100.2/24", "198.51.100.102/24"],
    ]
    assert [own["netplan"] for own in plans] == [None, None]


@pytest.mark.parametrize(
    ("subnets", "said"),
    [
        (("10.0.0.0/24", "10.0.0.0/25"), "rail 0 and rail 1 need different subnets"),
        (("10.0.0.1/24",), "fabric_subnets: 10.0.0.1/24 has host bits set"),
        (("10.0.0.0/31",), "fabric_subnets: 10.0.0.0/31 has no room for two hosts"),
        (("10.0.0.0/24",), "fabric_subnets has 1 entries, rail 1 needs one of its own"),
        (("192.0.2.0/25", "10.0.1.0/24"), "overlaps 192.0.2.11/24 on spark-a enP7s7; choose another subnet"),
    ],
)
def test_f10_subnets_that_we_write_must_be_free_and_different(subnets: tuple[str, ...], said: str) -> None:
    assert said in refusal(head(), worker(), subnets=subnets)


def test_f10_a_subnet_of_the_kept_rail_is_not_given_to_the_other() -> None:
    one = head(enp1s0f1np1=link("192.168.178.1/24"))
    other = worker(enp1s0f0np0=link("192.168.178.2/24"))
    assert "192.168.178.0/24 overlaps 192.168.178.1/24 on spark-a enp1s0f1np1" in refusal(one, other)


def test_f15_a_live_port_of_another_network_takes_nobodys_place() -> None:
    ports = (("enp1s0f0np0", "rocep1s0f0", "0000:01:00.0"), *HEAD_PORTS)
    elsewhere = {"enp1s0f0np0": link("192.0.2.140/30")}
    plans = plan(network(ports, elsewhere | ADDRESSED_HEAD), worker(**ADDRESSED_WORKER))
    assert rails(plans) == [("enp1s0f1np1", "enp1s0f0np0"), ("enP2p1s0f1np1", "enP2p1s0f0np0")]
    bare = plan(network(ports, elsewhere), worker())
    assert rails(bare) == [("enp1s0f1np1", "enp1s0f0np0"), ("enP2p1s0f1np1", "enP2p1s0f0np0")]


def test_f15_subnets_and_not_positions_say_what_faces_what() -> None:
    crossed = worker(enp1s0f0np0=link("203.0.113.2/24"), enP2p1s0f0np0=link("198.51.100.2/24"))
    plans = plan(head(**ADDRESSED_HEAD), crossed)
    assert rails(plans) == [("enp1s0f1np1", "enP2p1s0f0np0"), ("enP2p1s0f1np1", "enp1s0f0np0")]
    assert plans[0]["ports"][0]["peers"] == ["198.51.100.2"]


def test_f07_the_second_rail_is_the_twin_and_no_other_cable() -> None:
    ports = (("enp1s0f0np0", "rocep1s0f0", "0000:01:00.0"), *HEAD_PORTS)
    one = network(ports, {"enp1s0f1np1": link("198.51.100.1/24")})
    plans = plan(one, worker(enp1s0f0np0=link("198.51.100.2/24")))
    assert rails(plans) == [("enp1s0f1np1", "enp1s0f0np0"), ("enP2p1s0f1np1", "enP2p1s0f0np0")]


def test_f07_where_a_twin_is_dark_the_other_cable_of_a_spark_is_left_alone() -> None:
    other_cable = ("enp1s0f0np0", "rocep1s0f0", "0000:01:00.0")
    one = network((*HEAD_PORTS, other_cable), {"enp1s0f1np1": link("198.51.100.1/24")})
    ends = {"enp1s0f1np1": link("198.51.100.2/24"), "enP2p1s0f1np1": link(carrier=False)}
    plans = plan(one, network((*HEAD_PORTS, other_cable), ends))
    assert rails(plans) == [("enp1s0f1np1", "enp1s0f1np1")]


@pytest.mark.parametrize(("netdev", "state"), [("enp1s0f0np0", "down"), ("enP7s7", "no RoCE port")])
def test_f24_a_port_that_is_set_but_dark_is_refused_with_those_that_are_up(netdev: str, state: str) -> None:
    ports = (*HEAD_PORTS, ("enp1s0f0np0", "rocep1s0f0", "0000:01:00.0"))
    dark = network(ports, ADDRESSED_HEAD | {"enp1s0f0np0": link(carrier=False)})
    assert refusal(dark, worker(**ADDRESSED_WORKER), netdevs=(netdev, None)) == (
        f"fabric_netdev on spark-a: {netdev} is {state} on the head; "
        "up RoCE ports: enp1s0f1np1, enP2p1s0f1np1"
    )


@pytest.mark.parametrize("netdevs", [("enP2p1s0f1np1", None), (None, "enP2p1s0f0np0")])
@pytest.mark.parametrize("addressed", [True, False])
def test_a_port_that_is_set_on_either_node_makes_the_main_rail(
    netdevs: tuple[str | None, str | None], addressed: bool
) -> None:
    nodes = (head(**ADDRESSED_HEAD), worker(**ADDRESSED_WORKER)) if addressed else (head(), worker())
    main, second = rails(plan(*nodes, netdevs=netdevs))
    assert [wanted in (None, port) for wanted, port in zip(netdevs, main, strict=True)] == [True, True]
    assert not set(main) & set(second)


def test_a_peers_address_that_is_set_makes_the_main_rail() -> None:
    nodes = head(**ADDRESSED_HEAD), worker(**ADDRESSED_WORKER)
    main, second = rails(plan(*nodes, peers=("203.0.113.2", None)))
    assert (main, second) == (("enP2p1s0f1np1", "enP2p1s0f0np0"), ("enp1s0f1np1", "enp1s0f0np0"))
    assert rails(plan(*nodes, peers=(None, "203.0.113.1")))[0] == main
    assert refusal(*nodes, peers=("192.0.2.12", None)) == (
        "fabric_peer 192.0.2.12 is on no RoCE port of spark-b that may be used: enp1s0f0np0, enP2p1s0f0np0"
    )


def test_ports_that_are_down_are_set_up_before_anything_is_decided() -> None:
    asleep = {netdev: link(up=False, carrier=False) for netdev in ADDRESSED_HEAD}
    plans = plan(head(**asleep), worker())
    assert [own["bring_up"] for own in plans] == [["enp1s0f1np1", "enP2p1s0f1np1"], []]
    assert [own["ports"] for own in plans] == [[], []]
    assert refusal(head(**asleep), worker(), manage=False) == (
        "spark-a: no RDMA port has a cable with a live other end (enp1s0f1np1, enP2p1s0f1np1); "
        "set down, and left so by fabric_manage: false: enp1s0f1np1, enP2p1s0f1np1"
    )


@pytest.mark.parametrize(("count", "woken"), [("auto", ["enP2p1s0f1np1"]), ("1", [])])
def test_beside_a_working_main_rail_only_its_twin_is_woken(count: str, woken: list[str]) -> None:
    ports = (("enp1s0f0np0", "rocep1s0f0", "0000:01:00.0"), *HEAD_PORTS)
    down = link(up=False, carrier=False)
    one = network(ports, {"enp1s0f0np0": down, "enP2p1s0f1np1": down, "enp1s0f1np1": link("198.51.100.1/24")})
    other = worker(enp1s0f0np0=link("198.51.100.2/24"), enP2p1s0f0np0=link(carrier=False))
    assert plan(one, other, rails=count)[0]["bring_up"] == woken


def test_up_without_cable_is_told_with_the_ports_that_were_looked_at() -> None:
    dark = {netdev: link(carrier=False) for netdev in ADDRESSED_WORKER}
    assert refusal(head(), worker(**dark)) == (
        "spark-b: no RDMA port has a cable with a live other end (enp1s0f0np0, enP2p1s0f0np0)"
    )


def test_two_rails_are_refused_when_there_is_one() -> None:
    one_cable = worker(enP2p1s0f0np0=link(carrier=False))
    assert "rails is 2, but only 1 pair of cabled RDMA ports" in refusal(head(), one_cable, rails="2")
    plans = plan(head(), one_cable)
    assert len(rails(plans)) == 1
    assert plans[0]["warnings"] == [
        "rail 1 roceP2p1s0f1 (-, MTU 9000) <-> roceP2p1s0f0 (-, MTU 9000, down) "
        "does not reach the peer: not used: no carrier on spark-b enP2p1s0f0np0"
    ]
    assert plan(head(), one_cable, rails="1")[0]["warnings"] == []


def test_of_several_addresses_the_shared_one_counts() -> None:
    one = head(enp1s0f1np1=link("10.9.9.1/24", "198.51.100.1/24"))
    plans = plan(one, worker(enp1s0f0np0=link("198.51.100.2/24")), rails="1")
    assert addresses(plans) == [["198.51.100.1/24"], ["198.51.100.2/24"]]


def test_a_moved_cable_takes_its_subnet_along() -> None:
    ports = (*HEAD_PORTS, ("enp1s0f0np0", "rocep1s0f0", "0000:01:00.0"))
    one = network(ports, {"enp1s0f0np0": link("192.168.177.1/24", carrier=False)})
    one["network"]["netplan"] = {NETPLAN_FILE: "network:\n  ethernets:\n    enp1s0f0np0:\n"}
    plans = plan(one, worker(enp1s0f0np0=link("192.168.177.2/24")), rails="1")
    assert addresses(plans) == [["192.168.177.1/24"], ["192.168.177.2/24"]]
    assert "enp1s0f0np0" not in plans[0]["netplan"]


def test_a_lost_address_is_given_again_and_the_ports_stay_paired() -> None:
    other = worker(enp1s0f0np0=link("192.168.177.2/24"), enP2p1s0f0np0=link("192.168.178.2/24"))
    plans = plan(head(enP2p1s0f1np1=link("192.168.178.1/24")), other)
    assert rails(plans) == [("enp1s0f1np1", "enp1s0f0np0"), ("enP2p1s0f1np1", "enP2p1s0f0np0")]
    assert addresses(plans)[0] == ["192.168.177.1/24", "192.168.178.1/24"]


def test_f14_each_port_stays_with_the_service_that_has_it() -> None:
    one = head()
    one["network"]["makers"]["enp1s0f1np1"] = maker("NetworkManager", "Wired connection 3", lasting=False)
    plans = plan(one, worker())
    assert [port["service"] for port in plans[0]["ports"]] == ["NetworkManager", "networkd"]
    assert plans[0]["profiles"] == [{"netdev": "enp1s0f1np1", "address": "192.168.177.1/24", "mtu": 9000}]
    written = yaml.safe_load(plans[0]["netplan"])["network"]["ethernets"]
    assert {name: port["renderer"] for name, port in written.items()} == {"enP2p1s0f1np1": "networkd"}
    assert plans[1]["profiles"] == []
