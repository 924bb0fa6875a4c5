"""What the plan says of a link that is there: who made it, and which way the workers are reached."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.fabric_plan import Wish, plan_all
from fabric_plans import addresses, plan, rails, refusal
from probes import HEAD_PORTS, NAMES, WORKER_PORTS, head, link, maker, network, worker

MAIN, PEER = "enp1s0f1np1", "enp1s0f0np0"
HEAD = {MAIN: link("198.51.100.1/24"), "enP2p1s0f1np1": link("203.0.113.1/24")}
WORKER = {PEER: link("198.51.100.2/24"), "enP2p1s0f0np0": link("203.0.113.2/24")}
LAN = {"enP7s7": link("192.0.2.12/24", mtu=1500)}
OVER = "worker {} is reached over enP7s7, not a CX7 port: using {} for the fabric"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            maker("networkd", "10-netplan-x.network", "/etc/netplan/40-cx7.yaml"),
            "netplan (/etc/netplan/40-cx7.yaml)",
        ),
        (
            maker("networkd", "10-netplan-x.network", "/etc/netplan/1.yaml", "/etc/netplan/2.yaml"),
            "netplan (/etc/netplan/1.yaml, /etc/netplan/2.yaml)",
        ),
        (
            maker("networkd", "rail.network", "/etc/systemd/network/rail.network"),
            "systemd-networkd (/etc/systemd/network/rail.network)",
        ),
        (
            maker("NetworkManager", "cx8-rail1", "/etc/NetworkManager/system-connections/r.nmconnection"),
            'NetworkManager profile "cx8-rail1" (/etc/NetworkManager/system-connections/r.nmconnection)',
        ),
        (maker("NetworkManager", "netplan-x", "/etc/netplan/40.yaml"), "netplan (/etc/netplan/40.yaml)"),
        (
            maker("NetworkManager", f"twinserve-{MAIN}", "/etc/NetworkManager/system-connections/t"),
            "Twinserve (/etc/NetworkManager/system-connections/t)",
        ),
        (maker(None, None, "/etc/network/interfaces"), "ifupdown (/etc/network/interfaces)"),
    ],
)
def test_what_is_found_names_its_maker(made: dict[str, Any], said: str) -> None:
    one = head(**{MAIN: link("192.168.100.10/24", mtu=1500)})
    one["network"]["makers"][MAIN] = made
    plans = plan(one, worker(**{PEER: link("192.168.100.11/24", mtu=1500)}), rails="1")
    assert plans[0]["found"] == [
        f"head {MAIN}: 192.168.100.10/24, MTU 1500, from {said}",
        f"worker {PEER}: 192.168.100.11/24, MTU 1500",
    ]


def test_what_is_set_by_hand_and_what_is_bare_is_told_too() -> None:
    one, other = head(**{MAIN: link("192.168.100.10/24")}), worker(**{PEER: link(mtu=1500)})
    one["network"]["makers"][MAIN] = maker(lasting=False, by_hand=("192.168.100.10/24",))
    other["network"]["makers"][PEER] = maker("NetworkManager", "Wired connection 3", "/run/w3")
    plans = plan(one, other, rails="1")
    assert plans[1]["found"] == [
        f"head {MAIN}: 192.168.100.10/24, MTU 9000, set by hand",
        f'worker {PEER}: no address, MTU 1500, NetworkManager profile "Wired connection 3" (/run/w3)',
    ]


def test_f12_link_local_addresses_are_told_before_they_are_replaced() -> None:
    one, other = head(**{MAIN: link("169.254.7.9/16")}), worker(**{PEER: link("169.254.201.3/16")})
    one["network"]["makers"][MAIN] = maker("networkd", "10-netplan-x.network", "/etc/netplan/40-cx7.yaml")
    assert plan(one, other, rails="1")[0]["found"] == [
        f"head {MAIN}: 169.254.7.9/16, MTU 9000, from netplan (/etc/netplan/40-cx7.yaml)",
        f"worker {PEER}: 169.254.201.3/16, MTU 9000",
    ]


def test_of_bare_rails_there_is_nothing_to_tell() -> None:
    assert plan(head(), worker())[0]["found"] == []


def found(one: dict[str, Any], other: dict[str, Any], *given: str, **wish: Any) -> list[str]:
    plans = plan_all([one, other], NAMES, Wish(**wish), given)
    assert plans[0]["error"] == ""
    return [text for text in plans[0]["found"] if " is reached over " in text]


def test_f05_a_worker_given_by_its_lan_address_is_told_with_the_address_that_is_used() -> None:
    nodes = head(**HEAD), worker(**WORKER | LAN)
    text = OVER.format("192.0.2.12", "198.51.100.2")
    assert found(*nodes, "192.0.2.11", "192.0.2.12") == [text]
    assert found(*nodes, "192.0.2.11", "192.0.2.12", peers=("192.0.2.12", None)) == [text]
    assert found(*nodes, "192.0.2.11", "198.51.100.2") == []
    assert found(*nodes, "192.0.2.11", "192.0.2.99") == []  # forwarded from elsewhere


def test_f05_a_worker_given_by_a_name_is_found_by_what_the_head_takes_it_for() -> None:
    one = head(**HEAD) | {"resolved": {"spark-b.local": ["192.0.2.12"], "rail-b": ["203.0.113.2"]}}
    other = worker(**WORKER | LAN)
    assert found(one, other, "spark-a", "spark-b.local") == [OVER.format("spark-b.local", "198.51.100.2")]
    plans = plan(one, other, peers=("rail-b", None))
    assert rails(plans)[0] == ("enP2p1s0f1np1", "enP2p1s0f0np0")
    assert found(one, other, "spark-a", "spark-b.local", peers=("rail-b", None)) == [
        OVER.format("spark-b.local", "203.0.113.2")
    ]


@pytest.mark.parametrize("known", [{}, {"resolved": {}}, {"resolved": {"spork-b": []}}])
def test_f05_a_peer_that_the_head_cannot_resolve_is_refused_with_what_to_do(known: dict[str, Any]) -> None:
    assert refusal(head(**HEAD) | known, worker(**WORKER), peers=("spork-b", None)) == (
        "spark-a: fabric_peer spork-b is no name that spark-a can resolve: "
        "add it to /etc/hosts on spark-a, or give the address"
    )


def test_f05_the_lan_address_as_peer_leaves_the_rails_to_be_found() -> None:
    plans = plan(head(), worker(**LAN), peers=("192.0.2.12", None))
    assert addresses(plans)[1] == ["192.168.177.2/24", "192.168.178.2/24"]


def test_f15_a_listed_device_that_faces_nothing_is_refused() -> None:
    ports = (*HEAD_PORTS, ("enp1s0f0np0", "rocep1s0f0", "0000:01:00.0"))
    one = network(ports, HEAD | {"enp1s0f0np0": link("192.0.2.140/30")})
    every = "rocep1s0f0,roceP2p1s0f0,rocep1s0f1,roceP2p1s0f1"
    nodes = one, network(WORKER_PORTS, WORKER)
    assert refusal(*nodes, hcas=(every, every)) == (
        "rank 0: rocep1s0f0 (192.0.2.140/30) shares no subnet with the worker; "
        "take it out of nccl_ib_hca, or give both ends a subnet"
    )
    assert len(rails(plan(*nodes, hcas=("^rocep1s0f0", None)))) == 2


def test_f15_listed_devices_that_are_still_bare_become_rails() -> None:
    every = "rocep1s0f1,roceP2p1s0f1"
    assert len(rails(plan(head(), worker(), hcas=(every, None)))) == 2


def test_f16_a_selector_that_takes_nothing_is_refused_with_the_host() -> None:
    assert refusal(head(), worker(), hcas=("=foo", None)) == (
        "spark-a: nccl_ib_hca =foo matches no RoCE device; present: rocep1s0f1, roceP2p1s0f1"
    )
