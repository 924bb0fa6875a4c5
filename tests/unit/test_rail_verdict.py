"""What the proofs of both nodes say together: refused, dropped on both ranks, or used."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.rail_verdict import (
    judge,
    to_prove,
    used,
)

NAMES = ("spark-a", "spark-b")
ADDRESSES = (("198.51.100.1/24", "203.0.113.1/24"), ("198.51.100.2/24", "203.0.113.2/24"))
HCAS = (("rocep1s0f1", "roceP2p1s0f1"), ("rocep1s0f0", "roceP2p1s0f0"))
NETDEVS = (("enp1s0f1np1", "enP2p1s0f1np1"), ("enp1s0f0np0", "enP2p1s0f0np0"))
LOST = "enP2p1s0f1np1 (MTU 9000) does not reach 203.0.113.2: 8972 bytes unfragmented: no answer within 1 s"
DROPPED = (
    "rail 1 roceP2p1s0f1 (203.0.113.1, MTU 9000) <-> roceP2p1s0f0 (203.0.113.2, MTU 9000)"
    " does not reach the peer: not used"
)


def end(rank: int, rail: int, **changes: Any) -> dict[str, Any]:
    """A proved end of a rail; `changes` go into it, or into what was measured."""
    proved: dict[str, Any] = {
        "rail": rail,
        "netdev": NETDEVS[rank][rail],
        "hca": HCAS[rank][rail],
        "address": ADDRESSES[rank][rail],
        "mtu": 9000,
        "gid_index": 3,
        "problem": "",
        "warnings": [],
        "shares_subnet": False,
        "measured": {"speed": 200.0, "mtu": 9000, "sent": "8972 bytes", "reached": []},
    }
    measured = {
        name: changes.pop(name) for name in list(changes) if name in proved["measured"] and name != "mtu"
    }
    proved["measured"] |= measured
    if "port_mtu" in changes:
        proved["measured"]["mtu"] = changes.pop("port_mtu")
    return {**proved, **changes}


def proofs(**changes: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Both ranks' proofs of both rails; `changes` by `head0`, `head1`, `worker0`, `worker1`."""
    return [
        [end(rank, rail, **changes.get(f"{name}{rail}", {})) for rail in (0, 1)]
        for rank, name in enumerate(("head", "worker"))
    ]


def lost(target: str) -> list[dict[str, Any]]:
    return [{"target": target, "ok": False, "detail": "no answer"}]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "200 Gb/s, MTU 9000, GID 3, 8972 bytes both ways"),
        ({"worker0": {"gid_index": 5}}, "200 Gb/s, MTU 9000, GIDs 3 and 5, 8972 bytes both ways"),
        ({"worker0": {"speed": 100.0}}, "200 and 100 Gb/s, MTU 9000, GID 3, 8972 bytes both ways"),
        ({"worker0": {"speed": None}}, "speed unknown, MTU 9000, GID 3, 8972 bytes both ways"),
        (
            {"head0": {"sent": "9000 bytes by ARP"}, "worker0": {"sent": "9000 bytes by ARP"}},
            "200 Gb/s, MTU 9000, GID 3, 9000 bytes by ARP both ways",
        ),
    ],
)
def test_each_rail_that_passes_has_a_line(changes: dict[str, Any], line: str) -> None:
    verdict = judge(proofs(**changes), NAMES, "auto")
    assert verdict["lines"][0] == f"rail 0 rocep1s0f1 <-> rocep1s0f0: {line}"
    assert (len(verdict["lines"]), verdict["error"], verdict["dropped"]) == (2, "", [[], []])


@pytest.mark.parametrize(
    ("changes", "dropped", "why"),
    [
        pytest.param({"head1": {"problem": LOST}}, DROPPED, [f"spark-a: {LOST}"], id="one-direction"),
        pytest.param(
            {"head1": {"problem": LOST}, "worker1": {"problem": "gone"}},
            DROPPED,
            [f"spark-a: {LOST}", "spark-b: gone"],
            id="both",
        ),
        pytest.param(
            {"worker1": {"problem": "x", "port_mtu": 1500}},
            DROPPED.replace("203.0.113.2, MTU 9000", "203.0.113.2, MTU 1500"),
            ["spark-b: x"],
            id="other-mtu",
        ),
        pytest.param(
            {"worker1": {"problem": "x", "address": ""}},
            DROPPED.replace("203.0.113.2, MTU 9000", "-, MTU 9000"),
            ["spark-b: x"],
            id="no-address",
        ),
    ],
)
def test_f09_a_second_rail_that_does_not_pass_is_dropped_on_both_ranks(
    changes: dict[str, Any], dropped: str, why: list[str]
) -> None:
    verdict = judge(proofs(**changes), NAMES, "auto")
    assert verdict["error"] == ""
    assert verdict["dropped"] == [["roceP2p1s0f1"], ["roceP2p1s0f0"]]
    assert verdict["lines"][1:] == [f"warn {dropped}", *why]


def test_f09_where_two_rails_are_asked_for_the_reason_refuses_them() -> None:
    failed = {"problem": LOST, "reached": lost("203.0.113.2")}
    verdict = judge(proofs(head1=failed), NAMES, 2)
    assert verdict["error"] == (
        f"rails is 2, but only 1 can be used: {DROPPED} (spark-a: {LOST}). Look at the cable and at the MTU"
        " of both ports (ping -M do -s 8972 -I enP2p1s0f1np1 203.0.113.2 on spark-a), then run"
        " playbooks/fabric.yml, or use rails: auto"
    )
    assert verdict["dropped"] == [[], []]


@pytest.mark.parametrize("wanted", ["auto", 1, 2])
def test_a_main_rail_that_does_not_pass_is_refused_with_both_ends_and_the_next_step(wanted: Any) -> None:
    problem = "enp1s0f0np0 has no carrier: look at the cable, and whether the other node is on"
    verdict = judge(proofs(worker0={"problem": problem}), NAMES, wanted)
    assert verdict["error"] == (
        "rail 0 rocep1s0f1 (198.51.100.1, MTU 9000) <-> rocep1s0f0 (198.51.100.2, MTU 9000)"
        f" does not reach the peer: spark-b: {problem}. Mend that, then run playbooks/fabric.yml"
    )


def test_the_main_rails_error_is_the_one_that_is_told() -> None:
    verdict = judge(proofs(head0={"problem": "main"}, head1={"problem": "second"}), NAMES, 2)
    assert "spark-a: main" in verdict["error"]
    assert "second" not in verdict["error"]


def test_warnings_name_host_and_rail_and_drop_nothing() -> None:
    slow = "enP2p1s0f0np0 runs at 100 Gb/s, 200 are expected (fabric_speed)"
    verdict = judge(proofs(worker1={"warnings": [slow]}), NAMES, "auto")
    assert verdict["lines"][2:] == [f"warn spark-b rail 1 {slow}"]
    assert verdict["dropped"] == [[], []]


def plan(rank: int) -> dict[str, Any]:
    ports = [
        {
            "netdev": NETDEVS[rank][rail],
            "hca": HCAS[rank][rail],
            "address": ADDRESSES[rank][rail],
            "peers": [ADDRESSES[1 - rank][rail].partition("/")[0]],
        }
        for rail in (0, 1)
    ]
    return {"ports": ports, "summary": "2 rails: ..."}


PLANS = [plan(0), plan(1)]


def host(now: list[str] | None = None, before: list[str] | None = None) -> dict[str, Any]:
    """A host's variables: what this run's proof dropped, and what the plan on the node says of the last."""
    found: dict[str, Any] = {"ansible_facts": {"twinserve_node": {"rank_plan": {"dropped_rails": before}}}}
    return found if now is None else {**found, "__fabric_dropped_rails": now}


TWINS = ("roceP2p1s0f1", "roceP2p1s0f0")


@pytest.mark.parametrize(
    ("hosts", "wanted", "rails"),
    [
        pytest.param([host(), host()], "auto", 2, id="nothing-was-dropped"),
        pytest.param([host(now=[TWINS[0]]), host(now=[TWINS[1]])], "auto", 1, id="dropped-now"),
        pytest.param(
            [host(before=[TWINS[0]]), host(before=[TWINS[1]])], "auto", 1, id="dropped-by-the-last-run"
        ),
        pytest.param([host(before=[TWINS[0]]), host()], "auto", 1, id="one-nodes-word-is-enough"),
        pytest.param([host([], [TWINS[0]]), host([], [TWINS[1]])], "auto", 2, id="mended-since"),
        pytest.param([host(before=[TWINS[0]]), host(before=[TWINS[1]])], 2, 2, id="two-are-asked-for"),
        pytest.param([host(now=["rocep1s0f1"]), host(now=[])], "auto", 2, id="never-the-main-rail"),
        pytest.param([host(before=["gone0"]), host(before=["gone1"])], "auto", 2, id="other-devices"),
        pytest.param([{}, {}], "auto", 2, id="nodes-that-nobody-looked-at"),
    ],
)
def test_f09_later_plays_plan_without_a_dropped_rail(hosts: list[Any], wanted: Any, rails: int) -> None:
    plans = used(PLANS, hosts, wanted)
    assert [len(one["ports"]) for one in plans] == [rails, rails]
    assert [one["dropped"] for one in plans] == ([[], []] if rails == 2 else [[twin] for twin in TWINS])
    if rails == 1:
        assert [one["summary"] for one in plans] == ["1 rail: rocep1s0f1 <-> rocep1s0f0"] * 2
    assert [plan(0), plan(1)] == PLANS


def test_a_plan_without_ports_has_nothing_to_drop() -> None:
    assert used([{"ports": []}, {"ports": []}], [host(["x"]), host(["x"])], "auto")[0]["ports"] == []


@pytest.mark.parametrize("shared", [False, True])
def test_f10_each_end_learns_the_facing_port_and_whether_a_subnet_is_shared_on_any_node(shared: bool) -> None:
    nodes = [
        {
            "devices": [
                {"hca": HCAS[rank][rail], "mac": f"mac{rank}{rail}", "shares_subnet": shared and rank == 1}
                for rail in (0, 1)
            ]
        }
        for rank in (0, 1)
    ]
    head, worker = to_prove(PLANS, nodes)
    assert [one["macs"] for one in head] == [{"198.51.100.2": "mac10"}, {"203.0.113.2": "mac11"}]
    assert [one["macs"] for one in worker] == [{"198.51.100.1": "mac00"}, {"203.0.113.1": "mac01"}]
    assert [one["shares_subnet"] for one in (*head, *worker)] == [shared] * 4
    assert to_prove(PLANS, [{"devices": []}, {"devices": []}])[0][0]["macs"] == {"198.51.100.2": ""}
