"""Further addresses of a port that is written: they stay, and what cannot stay is named."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from fabric_plans import plan
from probes import head, link, maker, worker
from test_fabric_manage import MAIN, PEER, ours

RAIL, FURTHER = "198.51.100.2/24", ("10.5.5.5/24", "10.6.6.6/24")
BY_HAND = (RAIL, *FURTHER)
NETPLAN = ("networkd", "10-netplan-x.network", "/etc/netplan/40-cx7.yaml")
NM = ("NetworkManager", "cx7", "/etc/NetworkManager/system-connections/cx7.nmconnection")


def planned(
    made: dict[str, Any], *addresses: str, our: bool = False, routes: tuple[str, ...] = (), **more: Any
) -> tuple[list[str], list[str]]:
    """The worker's addresses as they are written, and the warnings."""
    one = head(**{MAIN: link("198.51.100.1/24", mtu=1500)})
    other = worker(**{PEER: link(*addresses, mtu=1500) | more})
    other["network"]["makers"][PEER] = made
    other["network"]["routes"] = {PEER: list(routes)}
    if our:
        ours(other, PEER)
        other["network"]["links"][PEER]["mtu"] = 4000
    own = plan(one, other, rails="1", manage=True)[1]
    if own["profiles"]:
        (profile,) = own["profiles"]
        return [profile["address"], *profile.get("more", [])], own["warnings"]
    ethernets = yaml.safe_load(own["netplan"])["network"]["ethernets"]
    assert own["ports"][0]["more"] == tuple(ethernets[PEER]["addresses"][1:])
    return ethernets[PEER]["addresses"], own["warnings"]


@pytest.mark.parametrize(
    ("made", "there", "our", "written"),
    [
        pytest.param(
            maker(lasting=False, by_hand=BY_HAND), (*FURTHER, RAIL), False, [RAIL, *FURTHER], id="all by hand"
        ),
        pytest.param(
            maker(*NETPLAN, by_hand=(RAIL, FURTHER[1])),
            (FURTHER[0], RAIL, FURTHER[1]),
            False,
            [RAIL, FURTHER[1]],
            id="netplan merges its own",
        ),
        pytest.param(
            maker(*NM, lasting=False), (RAIL, *FURTHER), False, [RAIL, *FURTHER], id="in place of a profile"
        ),
        pytest.param(
            maker(*NETPLAN, by_hand=FURTHER[1:]),
            (RAIL, *FURTHER),
            True,
            [RAIL, *FURTHER],
            id="ours and by hand",
        ),
        pytest.param(
            maker(*NETPLAN, by_hand=FURTHER[:1]),
            ("192.168.177.9/24", FURTHER[0]),
            True,
            [RAIL, FURTHER[0]],
            id="ours that gets another address",
        ),
        pytest.param(
            maker(lasting=False, by_hand=(RAIL, "198.51.100.1/25")),
            (RAIL, "198.51.100.1/25"),
            False,
            [RAIL],
            id="not what the other end has",
        ),
    ],
)
def test_f12_further_addresses_of_a_port_that_is_written_stay(
    made: dict[str, Any], there: tuple[str, ...], our: bool, written: list[str]
) -> None:
    assert planned(made, *there, our=our)[0] == written


def test_f12_leased_and_link_local_addresses_are_not_written_down() -> None:
    there = (RAIL, "10.5.5.5/24", "169.254.7.9/16")
    made = maker(lasting=False, by_hand=there)
    assert planned(made, *there, leased=["10.5.5.5/24"])[0] == [RAIL]


def test_f12_routes_and_ipv6_set_by_hand_are_named() -> None:
    made = maker(lasting=False, by_hand=(RAIL,))
    warnings = planned(made, RAIL, routes=("10.44.0.0/16 via 198.51.100.9",), ipv6=["fd00::2/64"])[1]
    assert warnings == [
        f"spark-b {PEER} is set up anew and loses what was set by hand: fd00::2/64, "
        "route 10.44.0.0/16 via 198.51.100.9; set it again, or write it into a file"
    ]
    assert planned(made, RAIL)[1] == []


def test_f12_nothing_is_said_of_a_port_that_is_kept() -> None:
    one, other = head(**{MAIN: link("198.51.100.1/24")}), worker(**{PEER: link(RAIL, FURTHER[0])})
    other["network"]["routes"] = {PEER: ["10.44.0.0/16"]}
    assert plan(one, other, rails="1")[1]["warnings"] == []
