"""Which kept configuration a pair goes back to: one that all its nodes have."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.good_choice import good_before, last_good

PATH = "/etc/twinserve/rank.json"


def kept(which: str) -> dict[str, Any]:
    """What a node keeps under an id."""
    return {
        "id": which,
        "digest": f"d{which}",
        "runtime": "r1",
        "release": "v1.1",
        "image": "engine@sha256:1",
        "nodes": ["a", "b"],
        "kept_at": "2026-11-01T10:00:00+00:00",
        "files": {PATH: f"rank {which}", "/etc/systemd/system/twinserve.service": "unit"},
    }


def node(stands: str, *ids: str, runtime: str = "r1") -> dict[str, Any]:
    """A node on which the plan of `stands` lies, and which keeps `ids`."""
    return {"good": [kept(which) for which in ids], "files": {PATH: f"rank {stands}"}, "runtime": runtime}


A_1_2 = node("1", "1", "2")


@pytest.mark.parametrize(
    ("head", "worker", "last", "before"),
    [
        (node("1", "1", "2"), node("1", "1", "2"), "1", "2"),
        (node("9", "1", "2"), node("9", "1", "2"), "1", "1"),
        (node("9", "1", "2"), node("1", "1", "2"), "1", "1"),
        (node("1", "1", "2", runtime="r9"), node("1", "1", "2", runtime="r9"), "1", "1"),
        # A run was interrupted while it kept 1: the worker does not have it yet.
        (node("1", "1", "2"), node("1", "2", "3"), "2", "2"),
        (node("1", "1"), node("1", "1"), "1", None),
        (node("1", "1"), node("1", "2"), None, None),
    ],
)
def test_the_newest_that_all_nodes_have(
    head: dict[str, Any], worker: dict[str, Any], last: str | None, before: str | None
) -> None:
    nodes = {"a": head, "b": worker}
    for host in nodes:
        assert last_good(nodes, host).get("id") == last
        assert good_before(nodes, host).get("id") == before


def test_it_is_named_for_people() -> None:
    found = last_good({"a": A_1_2, "b": A_1_2}, "b")
    assert found["fault"] == ""
    assert found["words"] == "release v1.1, engine@sha256:1, kept 2026-11-01T10:00:00+00:00 (1)"
    assert found["digest"] == "d1"


@pytest.mark.parametrize(
    ("nodes", "host", "fault"),
    [
        ({"a": node("1"), "b": A_1_2}, "a", "a keeps no configuration that passed verification"),
        ({"a": A_1_2}, "a", "b cannot be looked at"),
        ({"b": A_1_2}, "b", "a cannot be looked at"),
        (
            {"a": node("1", "1"), "b": node("1", "1")},
            "b",
            "no configuration other than the present one that passed verification is kept on all nodes of "
            "the pair",
        ),
    ],
)
def test_why_there_is_none(nodes: dict[str, Any], host: str, fault: str) -> None:
    assert good_before(nodes, host) == {"fault": fault}
