"""Plans of two nodes, for tests: those that come through, and why others do not."""

from __future__ import annotations

from typing import Any

import yaml
from ansible_collections.twinserve.pair.plugins.module_utils.fabric_plan import Wish, plan_all
from probes import NAMES


def plan(one: dict[str, Any], other: dict[str, Any], **wish: Any) -> list[dict[str, Any]]:
    """Plans of head and worker, which must have come through."""
    plans = plan_all([one, other], NAMES, Wish(**wish))
    assert [own["error"] for own in plans] == ["", ""]
    return plans


def refusal(one: dict[str, Any], other: dict[str, Any], **wish: Any) -> str:
    """The one reason that every node's plan carries."""
    errors = {own["error"] for own in plan_all([one, other], NAMES, Wish(**wish))}
    assert len(errors) == 1
    return str(errors.pop())


def rails(plans: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Ports that face each other, main rail first."""
    return list(zip(*[[port["netdev"] for port in own["ports"]] for own in plans], strict=True))


def addresses(plans: list[dict[str, Any]]) -> list[list[str]]:
    """What the ports of each node shall have, main rail first."""
    return [[port["address"] for port in own["ports"]] for own in plans]


def written(plans: list[dict[str, Any]]) -> list[dict[str, tuple[str, int]]]:
    """What is to be written on each node, in whatever form: address and MTU by port."""
    found = []
    for own in plans:
        profiles = {one["netdev"]: (one["address"], one["mtu"]) for one in own["profiles"]}
        ethernets = yaml.safe_load(own["netplan"] or "{network: {ethernets: {}}}")["network"]["ethernets"]
        files = {name: (port["addresses"][0], port["mtu"]) for name, port in ethernets.items()}
        found.append(profiles | files)
    return found
