"""Who measures which rail to whom: every direction, each rail alone, then all at once."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.bandwidth_plan import lacking, refusal, schedule

NAMES = ["spark-a", "spark-b"]


def rail(number: int, host: int, problem: str = "") -> dict[str, Any]:
    name = ("rocep1s0f0", "roceP2p1s0f0")[number]
    return {"rail": number, "hca": name, "netdev": name.replace("roce", "en") + "np0",
            "address": f"192.168.{177 + number}.{host}/24", "problem": problem}  # fmt: skip


def proofs(*problems: str) -> list[list[dict[str, Any]]]:
    """Two rails of two nodes; `problems` are those of the worker's rails."""
    told = [*problems, "", ""][:2]
    return [[rail(0, 1), rail(1, 1)], [rail(0, 2, told[0]), rail(1, 2, told[1])]]


def sent(plan: dict[str, Any]) -> list[tuple[int, int, bool, str]]:
    return [(one["phase"], one["rail"], one["together"], one["peer"]) for one in plan["clients"]]


def test_each_rail_alone_then_all_at_once_from_either_end() -> None:
    head, worker = schedule(proofs(), NAMES)
    assert sent(head) == [
        (0, 0, False, "192.168.177.2"),
        (1, 1, False, "192.168.178.2"),
        (2, 0, True, "192.168.177.2"),
        (2, 1, True, "192.168.178.2"),
    ]
    assert sent(worker) == [
        (3, 0, False, "192.168.177.1"),
        (4, 1, False, "192.168.178.1"),
        (5, 0, True, "192.168.177.1"),
        (5, 1, True, "192.168.178.1"),
    ]


def test_each_client_finds_its_own_server_at_the_other_end() -> None:
    head, worker = schedule(proofs(), NAMES)
    for sender, receiver in ((head, worker), (worker, head)):
        servers = {one["port"]: one for one in receiver["servers"]}
        assert [servers[one["port"]]["address"] for one in sender["clients"]] == [
            one["peer"] for one in sender["clients"]
        ]
    ports = [one["port"] for plan in (head, worker) for one in plan["servers"]]
    assert len(set(ports)) == len(ports) == 8
    assert head["limit"] == worker["limit"] > 6 * 5


def test_a_rail_that_was_not_proved_on_one_node_is_measured_on_none() -> None:
    head, worker = schedule(proofs("", "does not reach"), NAMES)
    assert [(one["rail"], one["together"]) for one in head["clients"] + worker["clients"]] == [(0, False)] * 2


def test_gpu_memory_is_measured_after_the_hosts_own() -> None:
    head, _ = schedule([[rail(0, 1)], [rail(0, 2)]], NAMES, ["host", "gpu"])
    assert [(one["phase"], one["memory"]) for one in head["clients"]] == [(0, "host"), (1, "gpu")]
    alone, _ = schedule(proofs(), NAMES, ["gpu"])
    assert {one["memory"] for one in alone["clients"] + alone["servers"]} == {"gpu"}


def test_three_nodes_measure_every_pair_of_them() -> None:
    plans = schedule([[rail(0, host)] for host in (1, 2, 3)], ["a", "b", "c"])
    assert [[one["to"] for one in plan["clients"]] for plan in plans] == [["b", "c"], ["a", "c"], ["a", "b"]]


def test_nothing_is_measured_where_nothing_was_proved() -> None:
    assert [plan["clients"] for plan in schedule([[], []], NAMES)] == [[], []]


def node(unit: str = "", state: str = "active", tool: bool = True) -> dict[str, Any]:
    services = {unit: {"ActiveState": state}} if unit else {}
    return {"services": services, "tools": {"ib_write_bw": tool}}


@pytest.mark.parametrize(
    ("unit", "state", "what"),
    [
        ("twinserve-rank.service", "active", "a rank runs"),
        ("twinserve-rank.service", "activating", "a rank runs"),
        ("twinserve.service", "active", "the pair is being served or started"),
    ],
)
def test_f17_it_is_refused_while_a_rank_runs_or_may_start(unit: str, state: str, what: str) -> None:
    assert refusal([node(), node(unit, state)], NAMES) == (
        f"spark-b: {what} ({unit}), and fabric_bandwidth_test would take its link: run "
        "playbooks/stop.yml first, or leave fabric_bandwidth_test out"
    )


def test_a_stopped_pair_may_be_measured() -> None:
    assert refusal([node("twinserve-rank.service", "failed"), node()], NAMES) == ""


def test_f17_a_missing_tool_is_told_with_its_package_and_host() -> None:
    assert lacking([node(), node(tool=False)], NAMES) == (
        "the rails' bandwidth is not measured: ib_write_bw (package perftest) is not installed on spark-b"
    )
    assert lacking([node(), node()], NAMES) == ""


def test_for_gpu_memory_the_package_is_not_enough() -> None:
    said = lacking([node(tool=False), node(tool=False)], NAMES, gpu_memory=True)
    assert said.startswith(
        "the rails' bandwidth is not measured: ib_write_bw is not installed on spark-a, spark-b"
    )
    assert (
        "build perftest 26.04.17 or later with CUDA (./autogen.sh && ./configure --prefix=/usr/local" in said
    )
