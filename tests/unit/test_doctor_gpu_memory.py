"""System B: the doctor measures RDMA into the GPUs' memory on both routes of a pair that does not serve."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.filter.doctor import FilterModule
from ansible_collections.twinserve.pair.plugins.module_utils.bandwidth_parse import ACS
from ansible_collections.twinserve.pair.plugins.module_utils.bandwidth_plan import schedule
from ansible_collections.twinserve.pair.plugins.module_utils.pair_report import report
from engine_data import PRODUCT as SPARKS
from probes import link
from station_data import PRODUCT, RELEASE, settings
from test_fabric_station import CARDS, ends, nodes

NAMES = ("station-a", "station-b")
FILTERS = FilterModule().filters()
TOOLS = {"ib_write_bw": True}
Measured = dict[str, Any]


def pair(*cables: Any, release: Any = None, **changes: Any) -> list[dict[str, Any]]:
    """The hosts of a pair with one rail by its settings; `cables` are the links of each port in turn."""
    known = {"services": {}, "tools": TOOLS, "errors": {}} | changes
    return [
        {
            "inventory_hostname": name,
            "ansible_facts": {
                "twinserve_node": {**node, **known},
                "twinserve_settings": settings(),
                "twinserve_release": release or PRODUCT.release(RELEASE),
            },
        }
        for name, node in zip(NAMES, nodes(CARDS, *cables), strict=True)
    ]


def routes(*hosts: dict[str, Any]) -> tuple[list[list[str]], list[str]]:
    found = FILTERS["gpu_memory_routes"](hosts)
    return [[end["hca"] for end in rank] for rank in found["ends"]], found["notes"]


def findings(*hosts: dict[str, Any]) -> list[tuple[str, str]]:
    """What the doctor says of the link."""
    seen = {one["inventory_hostname"]: one["ansible_facts"]["twinserve_node"] for one in hosts}
    found = FILTERS["doctor_findings"](hosts, report("pair1", NAMES, seen))
    return [(one["kind"], one["text"]) for one in found if one["text"].startswith("link: ")]


def run(rail: int, to: str, gbits: float | None, problem: str = "") -> dict[str, Any]:
    one = {"rail": rail, "memory": "gpu", "together": False, "netdev": CARDS[rail][0], "to": to}
    return one | {"gbits": gbits, "problem": problem, "speed": 400.0, "pcie": 504.0}


def measured(hosts: list[dict[str, Any]], *rates: float | None, problem: str = "", gpu: str = "") -> None:
    """Give both hosts the rates that each of them sent, by rail."""
    for host, other in zip(hosts, reversed(NAMES), strict=True):
        runs = [run(rail, other, rate, problem) for rail, rate in enumerate(rates)]
        host["__operate_measured"] = {"runs": runs, "gpu_problem": gpu, "rose": []}
        host["__operate_listening"] = {"silent": []}


def test_both_routes_are_measured_although_one_rail_is_used() -> None:
    hosts = pair(ends(1), ends(2))
    assert routes(*hosts) == ([["mlx5_0", "mlx5_1"]] * 2, [])
    found = FILTERS["gpu_memory_routes"](hosts)["ends"]
    proofs = [[{**end, "problem": ""} for end in rank] for rank in found]
    head, worker = schedule(proofs, NAMES, ["gpu"])
    assert [(one["hca"], one["peer"], one["memory"]) for one in head["clients"][:2]] == [
        ("mlx5_0", "10.1.0.2", "gpu"),
        ("mlx5_1", "10.2.0.2", "gpu"),
    ]
    assert len(worker["servers"]) == len(head["clients"])


def test_a_route_without_addresses_is_told_with_the_command_that_sets_it_up() -> None:
    used, notes = routes(*pair(ends(1)))
    assert used == [["mlx5_0"]] * 2
    text = (
        "rail 1 (mlx5_1 <-> mlx5_1) is not set up, and so not measured: playbooks/fabric.yml -e rails=2 -e "
        "fabric_bandwidth_test=true does both"
    )
    assert notes == [text]
    assert ("warning", f"link: {text}") in findings(*pair(ends(1)))
    bare, notes = routes(*pair())
    assert (bare, len(notes)) == ([[], []], 2)
    assert "playbooks/fabric.yml -e fabric_bandwidth_test=true does both" in notes[0]


def test_a_dark_second_cable_is_no_route() -> None:
    dark = (link(carrier=False), link(carrier=False))
    assert routes(*pair(ends(1), dark)) == ([["mlx5_0"]] * 2, [])


@pytest.mark.parametrize("unit", ["twinserve.service", "twinserve-rank.service"])
def test_f17_nothing_is_measured_nor_said_while_the_pair_serves_or_starts(unit: str) -> None:
    hosts = pair(ends(1), services={unit: {"ActiveState": "activating"}})
    assert routes(*hosts) == ([[], []], [])


def test_an_engine_without_rdma_into_the_gpu_is_left_alone() -> None:
    assert routes(*pair(ends(1), ends(2), release=SPARKS.release("v1.1"))) == ([[], []], [])


def test_nothing_is_measured_of_a_pair_that_was_not_seen_whole() -> None:
    hosts = pair(ends(1), ends(2))
    del hosts[1]["ansible_facts"]["twinserve_node"]
    assert routes(*hosts) == ([[], []], [])
    hosts = pair(ends(1), ends(2), network=None)
    assert routes(*hosts) == ([[], []], [])


def test_a_missing_tool_is_told_with_what_to_build() -> None:
    hosts = pair(ends(1), ends(2), tools={})
    used, (note,) = routes(*hosts)
    assert used == [[], []]
    assert "ib_write_bw is not installed on station-a, station-b: build perftest 26.04.17" in note
    assert findings(*hosts) == [("warning", f"link: {note}")]


def test_good_rates_are_no_finding() -> None:
    hosts = pair(ends(1), ends(2))
    measured(hosts, 392.1, 391.4)
    assert findings(*hosts) == []


def test_a_route_that_is_slow_or_cannot_register_memory_is_one() -> None:
    slow = pair(ends(1), ends(2))
    measured(slow, 392.1, 56.0)
    assert [(kind, text.partition(" Gb/s")[0]) for kind, text in findings(*slow)] == [
        ("warning", "link: rail 1 moves 56.0")
    ]
    broken = pair(ends(1))
    measured(broken, None, problem=ACS)
    told = [text for _, text in findings(*broken) if "IOMMU" in text]
    assert len(told) == 2
    assert all("only you change those" in text for text in told)


def test_what_keeps_it_from_being_measured_is_one() -> None:
    tool = pair(ends(1), ends(2))
    measured(
        tool,
        gpu="GPU memory is not measured, as /usr/bin/ib_write_bw has no --use_data_direct: build perftest",
    )
    assert [text.partition(" is not")[0] for _, text in findings(*tool)] == [
        "link: station-a: GPU memory",
        "link: station-b: GPU memory",
    ]
    dark = pair(ends(1), ends(2))
    dark[1]["__operate_proof"] = {"rails": [{"problem": "no carrier on enP1p3s0f0np0"}, {"problem": ""}]}
    assert findings(*dark) == [("warning", "link: station-b: no carrier on enP1p3s0f0np0")]
    held = pair(ends(1), ends(2))
    for host, text in zip(
        held, ("serve.yml by alice is changing this pair", "station-a says why"), strict=True
    ):
        host["__operate_unmeasured"] = f"GPU memory is not measured: {text}"
    assert findings(*held) == [
        ("warning", "link: GPU memory is not measured: serve.yml by alice is changing this pair")
    ]
