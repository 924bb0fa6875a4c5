"""Nodes that drift apart, and away from what they last served on."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.machines import (
    faults,
    is_remembered,
    machine,
    warnings,
)

OLD, NEW = ("6.17.0-1032-nvidia", "580.173.02"), ("7.0.0-1019-nvidia", "580.178.04")


def node(kernel: str, driver: str | None, kept: tuple[str, str] | None = None) -> dict[str, Any]:
    good = [{"id": "x", "machine": {"kernel": kept[0], "driver": kept[1]}}] if kept else []
    return {"kernel": kernel, "gpu": {"driver": driver} if driver else None, "good": good}


def test_o11_what_differs_between_the_nodes_is_told_once_with_both_values() -> None:
    nodes = [node(*OLD), node(*NEW)]
    assert warnings(nodes, 0) == [
        "warn kernel differs: head 6.17.0-1032-nvidia, worker 7.0.0-1019-nvidia",
        "warn driver differs: head 580.173.02, worker 580.178.04",
    ]
    assert warnings(nodes, 1) == []
    assert warnings([node(*OLD), node(*OLD)], 0) == []
    assert faults(nodes) == []


@pytest.mark.parametrize(
    ("drivers", "said"),
    [
        (
            ("580.173.02", "595.84"),
            [
                "NVIDIA driver differs: head 580.173.02, worker 595.84; ranks need one major version, "
                "update one of the nodes"
            ],
        ),
        (("580.173.02", "580.95"), []),
        (("580.173.02", None), []),  # nvidia-smi's own failure is told
    ],
)
def test_o11_two_major_versions_of_the_driver_are_refused(
    drivers: tuple[str, str | None], said: list[str]
) -> None:
    assert faults([node("6.17", driver) for driver in drivers]) == said


def test_o11_what_changed_since_a_node_last_served_is_told_until_it_serves_again() -> None:
    updated = node(*NEW, kept=OLD)
    assert warnings([node(*NEW, kept=NEW), updated], 1) == [
        "warn worker: kernel changed since it last served: 6.17.0-1032-nvidia -> 7.0.0-1019-nvidia",
        "warn worker: driver changed since it last served: 580.173.02 -> 580.178.04",
    ]
    assert warnings([updated, node(*NEW)], 1) == []
    assert [is_remembered(one) for one in (updated, node(*NEW, kept=NEW), node(*NEW))] == [False, True, True]
    assert not is_remembered({**updated, "good": [{"id": "x"}]}), "kept by an earlier version"
    assert machine({"kernel": "6.17", "gpu": None}) == {"kernel": "6.17", "driver": ""}
