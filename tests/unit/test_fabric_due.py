"""What there is to do about a planned link: nothing where the pair serves as planned, and why else."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.fabric_due import due
from ansible_collections.twinserve.pair.plugins.module_utils.fabric_plan import Plan

PORTS = [{"netdev": "enp1s0f0np0"}]


def node(runs: bool = True, **tools: bool) -> dict[str, Any]:
    state = "active" if runs else "inactive"
    services = {"twinserve-rank.service": {"ActiveState": state}}
    return {"services": services, "tools": {"ping": True, "sudo": True, **tools}}


def wanted(
    nodes: tuple[dict[str, Any], dict[str, Any]] = (node(), node()),
    plan: dict[str, Any] | None = None,
    lacks: bool = False,
    dry: bool = False,
    measure: bool = False,
) -> set[str]:
    """The reasons that hold on the worker, whose plan is the given one; `serves` is told by its absence."""
    plans = [{**asdict(Plan()), "ports": PORTS, **own} for own in ({}, plan or {})]
    found = due(nodes, plans, [{"lacks": False}, {"lacks": lacks}], 1, dry, measure)
    serves = found.pop("serves")
    return {name for name, holds in found.items() if holds} | (set() if serves else {"stopped"})


DOWN = (node(), node(runs=False))


@pytest.mark.parametrize(
    ("given", "reasons"),
    [
        ({}, set()),
        ({"nodes": DOWN}, {"stopped", "prove", "tell", "any"}),
        ({"nodes": (node(), node(ping=False))}, set()),
        ({"nodes": (node(sudo=False), DOWN[1])}, {"stopped", "prove", "tell", "change", "any"}),
        ({"plan": {"netplan": "network: {}"}}, {"addresses", "prove", "tell", "change", "any"}),
        ({"plan": {"profiles": [{"name": "x"}]}}, {"addresses", "prove", "tell", "change", "any"}),
        ({"plan": {"netplan": "network: {}"}, "dry": True}, {"addresses", "tell", "change", "any"}),
        ({"plan": {"bring_up": ["enp1s0f0np0"]}}, {"change", "any"}),
        ({"plan": {"warnings": ["one rail is dark"]}}, {"tell", "any"}),
        ({"plan": {"error": "no rail"}}, {"any"}),
        ({"plan": {"ports": []}, "nodes": DOWN}, {"stopped", "any"}),
        ({"nodes": DOWN, "dry": True}, {"stopped", "prove", "tell", "any"}),
        ({"nodes": (node(), node(runs=False, ping=False)), "dry": True}, {"stopped", "change", "any"}),
        ({"lacks": True}, {"wire", "change", "any"}),
        ({"measure": True}, {"change", "any"}),
    ],
)
def test_what_there_is_to_do(given: dict[str, Any], reasons: set[str]) -> None:
    assert wanted(**given) == reasons
