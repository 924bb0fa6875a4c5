"""What `fabric_manage` does with rails that are there, half there, or cannot work: auto, true and false."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.fabric_ports import NETPLAN_FILE
from fabric_plans import addresses, plan, refusal, written
from probes import head, link, maker, worker

MAIN, TWIN = "enp1s0f1np1", "enP2p1s0f1np1"
PEER, PEER_TWIN = "enp1s0f0np0", "enP2p1s0f0np0"
MEND = "set fabric_manage: true to let Twinserve mend it"
FALSE = f"fabric_manage: false only checks: mend it there, or {MEND}"
NOTHING: list[dict[str, tuple[str, int]]] = [{}, {}]


def main_rail(one: dict[str, Any], other: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both nodes, with those ends of the main rail."""
    return head(**{MAIN: one}), worker(**{PEER: other})


def made(node: dict[str, Any], netdev: str, **by: Any) -> dict[str, Any]:
    """The node, with that port configured by somebody."""
    service, profile, files = by.pop("service", "networkd"), by.pop("profile", None), by.pop("files", ())
    node["network"]["makers"][netdev] = maker(service, profile, *files, **by)
    return node


def ours(node: dict[str, Any], *netdevs: str) -> dict[str, Any]:
    """The node, with those ports in our netplan file."""
    lines = "".join(f"    {netdev}:\n      mtu: 9000\n" for netdev in netdevs)
    node["network"]["netplan"][NETPLAN_FILE] = f"network:\n  ethernets:\n{lines}"
    return node


@pytest.mark.parametrize("manage", ["auto", True, False])
@pytest.mark.parametrize("mtu", [9000, 1500])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("198.51.100.1/24", "198.51.100.2/24", id="one subnet"),
        pytest.param("198.51.100.1/24", "198.51.100.2/25", id="two prefix lengths, both ways in"),
        pytest.param("10.0.0.0/31", "10.0.0.1/31", id="point to point"),
        pytest.param("192.168.100.10/24", "192.168.100.11/24", id="host numbers of another maker"),
    ],
)
def test_a_valid_rail_is_kept_by_all(manage: bool | str, mtu: int, one: str, other: str) -> None:
    plans = plan(*main_rail(link(one, mtu=mtu), link(other, mtu=mtu)), manage=manage, rails="1")
    assert (addresses(plans), written(plans)) == ([[one], [other]], NOTHING)
    assert [port["mtu"] for own in plans for port in own["ports"]] == [mtu, mtu]


HALF = [
    ("198.51.100.1/24", "198.51.100.2/24"),
    ("198.51.100.2/24", "198.51.100.1/24"),  # 2 is taken
    ("192.168.100.10/24", "192.168.100.2/24"),
    ("10.0.0.0/31", "10.0.0.1/31"),
    ("10.0.0.5/30", "10.0.0.6/30"),
]


@pytest.mark.parametrize(("there", "given"), HALF)
def test_a_bare_end_gets_a_free_address_in_the_subnet_of_the_other(there: str, given: str) -> None:
    plans = plan(*main_rail(link(there, mtu=1500), link()), rails="1")
    assert addresses(plans) == [[there], [given]]
    assert written(plans) == [{}, {PEER: (given, 1500)}]
    link_local = link("169.254.7.9/16")
    assert addresses(plan(*main_rail(link(there), link_local), rails="1")) == [[there], [given]]


def test_an_address_that_any_port_has_is_not_given_again() -> None:
    nodes = main_rail(link("198.51.100.1/24", "198.51.100.2/24"), link())
    assert addresses(plan(*nodes, rails="1"))[1] == ["198.51.100.3/24"]


def test_the_head_is_completed_as_well() -> None:
    plans = plan(*main_rail(link(), link("192.168.100.11/24")), rails="1")
    assert written(plans) == [{MAIN: ("192.168.100.1/24", 9000)}, {}]


def test_f09_a_bare_twin_is_completed_beside_a_kept_main_rail() -> None:
    one = head(**{MAIN: link("198.51.100.1/24"), TWIN: link("203.0.113.1/24")})
    plans = plan(one, worker(**{PEER: link("198.51.100.2/24")}))
    assert written(plans) == [{}, {PEER_TWIN: ("203.0.113.2/24", 9000)}]


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (
            "192.0.2.99/24",
            "rail 0: the subnet 192.0.2.0/24 of spark-a enp1s0f1np1 overlaps 192.0.2.11/24 on spark-b enP7s7",
        ),
        (
            "10.0.0.1/32",
            "rail 0: the subnet 10.0.0.1/32 of spark-a enp1s0f1np1 has no free address for "
            "spark-b enp1s0f0np0",
        ),
    ],
)
def test_a_bare_end_that_cannot_be_completed_is_refused_or_both_get_ours(there: str, said: str) -> None:
    nodes = main_rail(link(there), link())
    assert refusal(*nodes, rails="1") == f"{said}; {MEND}"
    assert addresses(plan(*nodes, rails="1", manage=True)) == [["192.168.177.1/24"], ["192.168.177.2/24"]]


def test_f10_a_bare_twin_is_not_completed_in_the_subnet_of_the_main_rail() -> None:
    one = head(**{MAIN: link("198.51.100.1/24"), TWIN: link("198.51.100.101/24")})
    other = worker(**{PEER: link("198.51.100.2/24")})
    why = (
        "rail 1: the subnet 198.51.100.0/24 of spark-a enP2p1s0f1np1 overlaps 198.51.100.2/24 on spark-b "
        "enp1s0f0np0 (rail 0 and rail 1 need different subnets)"
    )
    assert refusal(one, other, rails="2") == f"rails is 2, but only 1 can be used: {why}; {MEND}"
    plans = plan(one, other)
    assert (written(plans), len(plans[0]["ports"])) == (NOTHING, 1)
    assert plans[0]["warnings"] == [
        "rail 1 roceP2p1s0f1 (198.51.100.101, MTU 9000) <-> roceP2p1s0f0 (-, MTU 9000) "
        f"does not reach the peer: not used: {why}; {MEND}"
    ]


INVALID = [
    pytest.param(
        link("198.51.100.1/24"),
        link("203.0.113.2/24"),
        "no CX7 subnet shared by head and worker on rail 0: spark-a enp1s0f1np1 has 198.51.100.1/24, "
        "spark-b enp1s0f0np0 has 203.0.113.2/24",
        id="no shared subnet",
    ),
    pytest.param(
        link("198.51.100.1/24"),
        link("198.51.100.1/24"),
        "no CX7 subnet shared by head and worker on rail 0: "
        "spark-a enp1s0f1np1 and spark-b enp1s0f0np0 both have 198.51.100.1",
        id="same address twice",
    ),
    pytest.param(
        link("198.51.100.1/24"),
        link("198.51.100.200/25"),
        "no CX7 subnet shared by head and worker on rail 0: "
        "spark-b enp1s0f0np0 has 198.51.100.200/25, which leaves out 198.51.100.1/24 of spark-a enp1s0f1np1",
        id="prefix too long on the worker",
    ),
    pytest.param(
        link("198.51.100.200/25"),
        link("198.51.100.1/24"),
        "no CX7 subnet shared by head and worker on rail 0: "
        "spark-a enp1s0f1np1 has 198.51.100.200/25, which leaves out 198.51.100.1/24 of spark-b enp1s0f0np0",
        id="prefix too long on the head",
    ),
]


@pytest.mark.parametrize(("one", "other", "said"), INVALID)
def test_f05_a_rail_of_others_that_cannot_work_is_refused_with_what_is_wrong(
    one: dict[str, Any], other: dict[str, Any], said: str
) -> None:
    nodes = main_rail(one, other)
    assert refusal(*nodes, rails="1") == f"{said}; {MEND}"
    assert refusal(*nodes, rails="1", manage=False) == f"{said}; {FALSE}"
    plans = plan(*nodes, rails="1", manage=True)
    assert written(plans) == [{MAIN: ("192.168.177.1/24", 9000)}, {PEER: ("192.168.177.2/24", 9000)}]


def test_f11_different_mtus_of_others_are_refused_or_set_to_one() -> None:
    nodes = main_rail(link("198.51.100.1/24", mtu=9000), link("198.51.100.2/24", mtu=1500))
    said = (
        "rail 0 MTU differs: head 9000, worker 1500; set both to the same value "
        "(spark-a enp1s0f1np1, spark-b enp1s0f0np0)"
    )
    assert refusal(*nodes, rails="1") == f"{said}; {MEND}"
    assert refusal(*nodes, rails="1", manage=False) == f"{said}; {FALSE}"
    plans = plan(*nodes, rails="1", manage=True)
    assert addresses(plans) == [["198.51.100.1/24"], ["198.51.100.2/24"]]
    assert written(plans) == [{}, {PEER: ("198.51.100.2/24", 9000)}]


def test_f11_ours_takes_the_mtu_of_the_end_that_others_have() -> None:
    one, other = main_rail(link("198.51.100.1/24", mtu=1500), link("198.51.100.2/24", mtu=9000))
    plans = plan(one, ours(other, PEER), rails="1")
    assert written(plans) == [{}, {PEER: ("198.51.100.2/24", 1500)}]


@pytest.mark.parametrize("manage", ["auto", True])
def test_f11_rails_of_ours_follow_fabric_mtu(manage: bool | str) -> None:
    one, other = main_rail(link("192.168.177.1/24"), link("192.168.177.2/24"))
    nodes = ours(one, MAIN), ours(other, PEER)
    assert written(plan(*nodes, rails="1", manage=manage)) == NOTHING
    assert written(plan(*nodes, rails="1", manage=manage, mtu=4000)) == [
        {MAIN: ("192.168.177.1/24", 4000)},
        {PEER: ("192.168.177.2/24", 4000)},
    ]


@pytest.mark.parametrize("manage", ["auto", True])
def test_f11_a_serving_pair_keeps_its_mtu_and_is_told_how_to_change_it(manage: bool | str) -> None:
    one, other = main_rail(link("192.168.177.1/24"), link("192.168.177.2/24"))
    one["services"] = {"twinserve-rank.service": {"ActiveState": "active"}}
    nodes = ours(one, MAIN), ours(other, PEER)
    plans = plan(*nodes, rails="1", mtu=4000, manage=manage)
    assert written(plans) == NOTHING
    assert plans[0]["warnings"] == [
        "rail 0 keeps MTU 9000 while the pair serves: playbooks/stop.yml, then playbooks/fabric.yml "
        "give it fabric_mtu 4000"
    ]
    assert plan(*nodes, rails="1")[0]["warnings"] == []


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        pytest.param(link("192.0.2.130/25"), "(192.0.2.130, MTU 9000)", id="other subnet"),
        pytest.param(link("203.0.113.2/24", mtu=1500), "(203.0.113.2, MTU 1500)", id="other MTU"),
    ],
)
def test_f09_a_second_rail_that_cannot_work_is_left_out_with_the_reason(
    change: dict[str, Any], shown: str
) -> None:
    one = head(**{MAIN: link("198.51.100.1/24"), TWIN: link("203.0.113.1/24")})
    other = worker(**{PEER: link("198.51.100.2/24"), PEER_TWIN: change})
    ends = f"roceP2p1s0f1 (203.0.113.1, MTU 9000) <-> roceP2p1s0f0 {shown}"
    text = f"rail 1 {ends} does not reach the peer: not used"
    for manage, hint in (("auto", MEND), (False, FALSE)):
        plans = plan(one, other, manage=manage)
        assert (len(plans[0]["ports"]), written(plans)) == (1, NOTHING)
        (warning,) = plans[1]["warnings"]
        assert warning.startswith(f"{text}: ") and warning.endswith(f"; {hint}")
        assert refusal(one, other, manage=manage, rails="2").startswith(
            "rails is 2, but only 1 can be used: "
        )
        assert plan(one, other, manage=manage, rails="1")[0]["warnings"] == []
    assert [len(entry) for entry in written(plan(one, other, manage=True, rails="2"))] != [0, 0]


def test_f09_false_leaves_bare_twins_out_and_says_so() -> None:
    nodes = main_rail(link("198.51.100.1/24"), link("198.51.100.2/24"))
    (warning,) = plan(*nodes, manage=False)[0]["warnings"]
    assert warning.startswith(
        "rail 1 roceP2p1s0f1 (-, MTU 9000) <-> roceP2p1s0f0 (-, MTU 9000) does not reach the peer: not used: "
    )


def test_false_writes_nothing_and_says_what_is_missing() -> None:
    assert refusal(*main_rail(link("198.51.100.1/24"), link()), manage=False) == (
        "no CX7 subnet shared by head and worker on rail 0: spark-a enp1s0f1np1 has 198.51.100.1/24, "
        f"spark-b enp1s0f0np0 has no address; {FALSE}"
    )


def test_f12_link_local_addresses_are_replaced_or_at_least_told() -> None:
    nodes = main_rail(link("169.254.7.9/16"), link("169.254.201.3/16"))
    made(nodes[0], MAIN, lasting=False, by_hand=("169.254.7.9/16",))
    assert addresses(plan(*nodes, rails="1")) == [["192.168.177.1/24"], ["192.168.177.2/24"]]
    kept = plan(*nodes, rails="1", manage=False)
    assert addresses(kept) == [["169.254.7.9/16"], ["169.254.201.3/16"]]
    assert kept[0]["warnings"] == ["rail 0 uses a link-local address that changes at reboot"]


def test_f12_an_address_set_by_hand_is_kept_with_a_warning_and_made_to_last_on_request() -> None:
    one, other = main_rail(link("198.51.100.1/24"), link("198.51.100.2/24"))
    nodes = one, made(other, PEER, lasting=False, by_hand=("198.51.100.2/24",))
    for manage in ("auto", False):
        plans = plan(*nodes, rails="1", manage=manage)
        assert written(plans) == NOTHING
        assert plans[0]["warnings"] == [
            "spark-b enp1s0f0np0 has 198.51.100.2/24 set by hand: it is gone after a reboot; "
            "fabric_manage: true makes it last"
        ]
    plans = plan(*nodes, rails="1", manage=True)
    assert (written(plans), plans[0]["warnings"]) == ([{}, {PEER: ("198.51.100.2/24", 9000)}], [])


def test_f12_an_address_set_by_hand_on_a_port_with_a_file_is_not_taken_for_the_files() -> None:
    one, other = main_rail(link("198.51.100.1/24"), link("203.0.113.9/24", "198.51.100.2/24"))
    nodes = one, made(other, PEER, profile="a.network", files=("/etc/a",), by_hand=("198.51.100.2/24",))
    assert plan(*nodes, rails="1")[0]["warnings"] == [
        "spark-b enp1s0f0np0 has 198.51.100.2/24 set by hand: it is gone after a reboot, "
        "or when systemd-networkd (/etc/a) takes it away; fabric_manage: true makes it last"
    ]
    assert written(plan(*nodes, rails="1", manage=True))[1] == {PEER: ("198.51.100.2/24", 9000)}


def test_f14_a_profile_in_run_is_told_and_made_to_last_on_request() -> None:
    one, other = main_rail(link("198.51.100.1/24"), link("198.51.100.2/24"))
    run = "/run/NetworkManager/system-connections/rail.nmconnection"
    nodes = one, made(other, PEER, service="NetworkManager", profile="rail", files=(run,), lasting=False)
    assert plan(*nodes, rails="1")[0]["warnings"] == [
        f'spark-b enp1s0f0np0 has 198.51.100.2/24 from NetworkManager profile "rail" ({run}): '
        "it is gone after a reboot; fabric_manage: true makes it last"
    ]
    assert plan(*nodes, rails="1", manage=True)[1]["profiles"] == [
        {"netdev": PEER, "address": "198.51.100.2/24", "mtu": 9000}
    ]


def test_f12_both_ends_set_by_hand_are_written_with_our_mtu() -> None:
    one, other = main_rail(link("198.51.100.1/24", mtu=1500), link("198.51.100.2/24", mtu=1500))
    nodes = (
        made(one, MAIN, lasting=False, by_hand=("198.51.100.1/24",)),
        made(other, PEER, lasting=False, by_hand=("198.51.100.2/24",)),
    )
    assert written(plan(*nodes, rails="1")) == NOTHING
    assert written(plan(*nodes, rails="1", manage=True)) == [
        {MAIN: ("198.51.100.1/24", 9000)},
        {PEER: ("198.51.100.2/24", 9000)},
    ]


def test_ours_goes_after_an_end_that_others_gave_another_subnet() -> None:
    one, other = main_rail(link("10.0.0.1/24"), link("192.168.177.2/24"))
    assert written(plan(one, ours(other, PEER), rails="1")) == [{}, {PEER: ("10.0.0.2/24", 9000)}]


@pytest.mark.parametrize("manage", ["auto", True])
def test_ours_is_given_again_where_it_was_lost(manage: bool | str) -> None:
    one, other = main_rail(link(), link("192.168.177.2/24"))
    plans = plan(ours(one, MAIN), ours(other, PEER), rails="1", manage=manage)
    assert written(plans) == [{MAIN: ("192.168.177.1/24", 9000)}, {}]
    assert [[port["kept"] for port in own["ports"]] for own in plans] == [[False], [True]]


def test_both_ends_of_ours_that_do_not_meet_get_one_subnet() -> None:
    one, other = main_rail(link("192.168.177.1/24"), link("10.9.0.2/24"))
    plans = plan(ours(one, MAIN), ours(other, PEER), rails="1")
    assert addresses(plans) == [["192.168.177.1/24"], ["192.168.177.2/24"]]
    assert written(plans)[0] == {}


def test_what_is_written_does_not_drop_the_other_rail_of_ours() -> None:
    one = head(**{MAIN: link("192.168.177.1/24"), TWIN: link()})
    other = worker(**{PEER: link("192.168.177.2/24"), PEER_TWIN: link("192.168.178.2/24")})
    plans = plan(ours(one, MAIN, TWIN), ours(other, PEER, PEER_TWIN))
    assert written(plans)[0] == {MAIN: ("192.168.177.1/24", 9000), TWIN: ("192.168.178.1/24", 9000)}


def test_mending_deletes_nothing_of_others_and_says_when_that_stands_in_the_way() -> None:
    nodes = main_rail(link("192.168.177.1/24"), link("192.168.177.1/24"))
    made(nodes[1], PEER, profile="10-netplan-x.network", files=("/etc/netplan/40-cx7.yaml",))
    assert refusal(*nodes, rails="1", manage=True) == (
        "spark-b enp1s0f0np0 has 192.168.177.1/24 from netplan (/etc/netplan/40-cx7.yaml), which the other "
        "end of rail 0 needs: take it out there, or choose another subnet (fabric_subnets)"
    )
    # A profile of ours takes the place of theirs, and what is set by hand goes by itself.
    for how in ({"service": "NetworkManager"}, {"lasting": False, "by_hand": ("192.168.177.1/24",)}):
        made(nodes[1], PEER, **how)
        assert addresses(plan(*nodes, rails="1", manage=True))[1] == ["192.168.177.2/24"]


@pytest.mark.parametrize(
    ("office", "why"),
    [
        (None, "neither systemd-networkd nor NetworkManager runs"),
        (
            "NetworkManager",
            "NetworkManager leaves enp1s0f0np0 alone (unmanaged), and systemd-networkd does not run",
        ),
    ],
)
def test_without_a_service_only_what_must_be_written_is_refused(office: str | None, why: str) -> None:
    one, other = main_rail(link("198.51.100.1/24"), link())
    made(made(other, PEER, service=None, lasting=False), "enP7s7", service=office)
    assert refusal(one, other, rails="1") == (
        f"spark-b: {why}, so nobody can give enp1s0f0np0 198.51.100.2/24: "
        "systemctl enable --now systemd-networkd, or set the port up yourself"
    )
    other["network"]["links"][PEER] = link("198.51.100.2/24")
    assert written(plan(one, other, rails="1")) == NOTHING


def test_f14_a_port_with_our_profile_is_ours() -> None:
    one, other = main_rail(link("192.168.177.1/24"), link("192.168.177.2/24"))
    for node, netdev in ((one, MAIN), (other, PEER)):
        made(node, netdev, service="NetworkManager", profile=f"twinserve-{netdev}", files=("/etc/x",))
    assert written(plan(one, other, rails="1")) == NOTHING
    plans = plan(one, other, rails="1", mtu=1500)
    assert [own["profiles"] for own in plans] == [
        [{"netdev": MAIN, "address": "192.168.177.1/24", "mtu": 1500}],
        [{"netdev": PEER, "address": "192.168.177.2/24", "mtu": 1500}],
    ]
    assert [own["netplan"] for own in plans] == [None, None]


@pytest.mark.parametrize("manage", ["auto", True, False])
def test_f09_twins_that_lost_their_carrier_are_told(manage: Any) -> None:
    dark = link("203.0.113.1/24", carrier=False)
    one = head(**{MAIN: link("198.51.100.1/24"), TWIN: dark})
    other = worker(**{PEER: link("198.51.100.2/24"), PEER_TWIN: link("203.0.113.2/24")})
    plans = plan(one, other, manage=manage)
    assert (len(plans[0]["ports"]), written(plans)) == (1, NOTHING)
    assert [own["warnings"] for own in plans] == [
        [
            "rail 1 roceP2p1s0f1 (203.0.113.1, MTU 9000, down) <-> roceP2p1s0f0 (203.0.113.2, MTU 9000) "
            "does not reach the peer: not used: no carrier on spark-a enP2p1s0f1np1"
        ]
    ] * 2
    assert plan(one, other, manage=manage, rails="1")[0]["warnings"] == []
