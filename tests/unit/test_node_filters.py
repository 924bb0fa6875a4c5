"""Filters: thin names for what is tested elsewhere, so only what they add is tested here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.twinserve.pair.plugins.filter.nodes import FilterModule
from ansible_collections.twinserve.pair.plugins.module_utils import gids
from ansible_collections.twinserve.pair.plugins.module_utils.gids import Gid
from ansible_collections.twinserve.pair.plugins.module_utils.rails import drift
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device
from probes import NAMES, head, link, worker

FILTERS = FilterModule().filters()
LINK = {
    "rails": "auto",
    "fabric_manage": "auto",
    "fabric_netdev": None,
    "fabric_peer": None,
    "nccl_ib_hca": None,
    "fabric_mtu": 9000,
    "fabric_subnets": ["10.1.0.0/24", "10.2.0.0/24"],
}


def settings(**worker_only: Any) -> list[dict[str, Any]]:
    return [dict(LINK), LINK | worker_only]


def test_f24_the_port_of_the_main_rail_is_each_nodes_own() -> None:
    plans = FILTERS["fabric_plan"]([head(), worker()], NAMES, settings(fabric_netdev="enP2p1s0f0np0"))
    assert [plan["ports"][0]["netdev"] for plan in plans] == ["enP2p1s0f1np1", "enP2p1s0f0np0"]
    assert [plan["ports"][0]["address"] for plan in plans] == ["10.1.0.1/24", "10.1.0.2/24"]


def test_f05_a_worker_that_is_reached_over_the_lan_is_told() -> None:
    other = worker(enP7s7=link("192.0.2.12/24"))
    plans = FILTERS["fabric_plan"]([head(), other], NAMES, settings(), ["192.0.2.11", "192.0.2.12"])
    assert plans[0]["found"] == [
        "worker 192.0.2.12 is reached over enP7s7, not a CX7 port: using 10.1.0.2 for the fabric"
    ]


def test_f16_the_selector_is_each_nodes_own() -> None:
    plans = FILTERS["fabric_plan"]([head(), worker()], NAMES, settings(nccl_ib_hca="=roceP2p1s0f0"))
    assert [plan["ports"][0]["netdev"] for plan in plans] == ["enP2p1s0f1np1", "enP2p1s0f0np0"]


@pytest.mark.parametrize(("rails", "count"), [("auto", 2), (1, 1), ("1", 1), (2, 2)])
def test_the_number_of_rails_may_be_text_or_number(rails: Any, count: int) -> None:
    plans = FILTERS["fabric_plan"]([head(), worker()], NAMES, [LINK | {"rails": rails}] * 2)
    assert [len(plan["ports"]) for plan in plans] == [count, count]


def test_a_node_whose_network_could_not_be_read_is_named() -> None:
    with pytest.raises(AnsibleFilterError, match="spark-b: the network could not be read"):
        FILTERS["fabric_plan"]([head(), {"network": None}], NAMES, settings())


def test_rendering_is_told_where_things_are_on_each_node() -> None:
    nodes = [{"hf": {"home": f"/hf{n}"}, "kernel_cache": f"/k{n}", "devices": []} for n in (0, 1)]
    own: list[dict[str, Any]] = [
        {"nccl_ib_hca": None, "fabric_netdev": None, "fabric_peer": None},
        {"nccl_ib_hca": "=x", "fabric_netdev": "e1", "fabric_peer": None},
    ]
    port = {"netdev": "e0", "hca": "r0", "address": "10.0.0.1/24", "mtu": 9000}
    inputs = FILTERS["rank_inputs"](nodes, NAMES, ("a0", "a1"), own, [{"ports": [port]}, {"ports": []}], {})
    assert inputs[0] == {
        "name": "spark-a",
        "hf_cache": "/hf0",
        "kernel_cache": "/k0",
        "image": None,
        "gpu_uuid": None,
        "address": "a0",
        "nccl_ib_hca": None,
        "fabric_netdev": None,
        "expected_link": [{"netdev": "e0", "hca": "r0", "address": "10.0.0.1", "gid_index": None}],
        "dropped_rails": [],
    }
    assert (inputs[1]["nccl_ib_hca"], inputs[1]["fabric_netdev"], inputs[1]["expected_link"]) == (
        "=x",
        "e1",
        [],
    )


def test_f02_a_rank_is_rendered_with_the_index_that_a_start_compares_with() -> None:
    table = tuple(
        Gid(index, gids.mapped("10.0.0.1"), kind) for index, kind in ((4, "IB/RoCE v1"), (5, "RoCE v2"))
    )
    device = Device("r0", "e0", "0000:01:00.0", "ACTIVE", "up", True, 9000, 200000, ("10.0.0.1/24",), table)
    node = {"hf": {"home": "/hf"}, "kernel_cache": "/k", "devices": [device.as_dict()]}
    own = [{"nccl_ib_hca": None, "fabric_netdev": None, "fabric_peer": None}]
    port = {"netdev": "e0", "hca": "r0", "address": "10.0.0.1/24"}
    (inputs,) = FILTERS["rank_inputs"]([node], NAMES[:1], ("a",), own, [{"ports": [port]}], {})
    assert drift(inputs["expected_link"], [device]) == []
    moved = replace(device, gids=(Gid(3, gids.mapped("10.0.0.1"), "RoCE v2"),))
    assert drift(inputs["expected_link"], [moved]) == [
        "GID index of r0 changed 5 -> 3 since the unit was rendered"
    ]


def test_a_peer_that_is_named_settles_the_ports_of_every_start() -> None:
    nodes = [{"hf": {"home": "/hf"}, "kernel_cache": "/k", "devices": []}] * 2
    own = [{"nccl_ib_hca": None, "fabric_netdev": None, "fabric_peer": peer} for peer in ("10.0.0.2", None)]
    ports = [{"netdev": f"e{n}", "hca": "r", "address": f"10.0.0.{n}/24"} for n in (1, 2)]
    inputs = FILTERS["rank_inputs"](nodes, NAMES, ("a", "b"), own, [{"ports": [port]} for port in ports], {})
    assert [one["fabric_netdev"] for one in inputs] == ["e1", "e2"]
    unplanned = FILTERS["rank_inputs"](nodes, NAMES, ("a", "b"), own, [{"ports": []}] * 2, {})
    assert [one["fabric_netdev"] for one in unplanned] == [None, None]


@pytest.mark.parametrize(
    ("given", "apart", "used"),
    [
        (None, ["r1", "r2"], "^r1,r2"),
        ("^r0", ["r1"], "^r0,r1"),
        ("^=r0", ["r1"], "^=r0,r1"),
        ("r0", [], "r0"),
        (None, [], None),
    ],
)
def test_f05_a_start_leaves_the_network_by_which_nodes_are_reached_out(
    given: str | None, apart: list[str], used: str | None
) -> None:
    node = {"hf": {"home": "/hf"}, "kernel_cache": "/k", "devices": []}
    own = [{"nccl_ib_hca": given, "fabric_netdev": None, "fabric_peer": None}]
    plan = {"ports": [], "apart": apart}
    (inputs,) = FILTERS["rank_inputs"]([node], NAMES[:1], ("a",), own, [plan], {})
    assert inputs["nccl_ib_hca"] == used
