"""What must happen so that the pair serves what is configured, and what may wait."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.managed_files import (
    UNITS,
    fingerprint,
    text_hash,
)
from ansible_collections.twinserve.pair.plugins.module_utils.serve_change import missing_parts, plan

PLAN = {"path": "/etc/twinserve/rank.json", "content": "plan", "mode": "0644"}
UNIT = {"path": f"{UNITS}/twinserve-rank.service", "content": "unit", "mode": "0644"}
PAIR = {"path": "/etc/twinserve/pair.json", "content": "pair", "mode": "0600"}
WANTED = [PLAN, UNIT, PAIR]


def node(
    *,
    rank: str = "active",
    supervisor: str = "active",
    enabled: str = "enabled",
    state: str | None = "serving",
    digest: str = "new",
    stale: bool = False,
    lacking: tuple[str, ...] = (),
    runtime: str | None = "r2",
    runs: str = "r2",
    read: str = "pair",
    kept: str = "id",
    kept_runtime: str = "r2",
    kept_pair: str = "pair",
    kernel: str = "6.17",
) -> dict[str, Any]:
    """A head; by default it serves the configuration `new` and has both files."""
    files = {one["path"]: fingerprint(one["content"], one["mode"]) for one in WANTED}
    reload = {"NeedDaemonReload": "yes" if stale else "no"}
    return {
        "kernel": kernel,
        "files": {path: known for path, known in files.items() if path not in lacking},
        "services": {
            "twinserve.service": {"ActiveState": supervisor, "UnitFileState": enabled, **reload},
            "twinserve-rank.service": {"ActiveState": rank, **reload},
        },
        "state": {"state": state, "digest": digest, "runtime": runs, "config_sha256": text_hash(read)}
        if state
        else None,
        "runtime": runtime,
        "good": [
            {
                "id": kept,
                "runtime": kept_runtime,
                "machine": {"kernel": "6.17", "driver": ""},
                "files": files | {PAIR["path"]: fingerprint(kept_pair, PAIR["mode"])},
            }
        ]
        if kept
        else [],
    }


NOTHING: dict[str, Any] = {"write": []} | dict.fromkeys(
    ("needed", "runtime", "stop", "reload", "units_wait", "start", "refresh", "remember", "keep"), False
)
IDLE = {"rank": "inactive", "supervisor": "inactive", "enabled": "disabled", "state": None}
BARE = {**IDLE, "lacking": (PLAN["path"], UNIT["path"], PAIR["path"]), "runtime": None}


@pytest.mark.parametrize(
    ("changes", "restart", "does"),
    [
        ({}, False, {}),
        ({}, True, {"stop": True, "start": True}),
        (
            {"digest": "old", "lacking": (PLAN["path"],)},
            False,
            {"stop": True, "start": True, "write": [PLAN]},
        ),
        (BARE, False, {"runtime": True, "start": True, "write": WANTED, "reload": True}),
        ({"runtime": "r1", "runs": "r1"}, False, {"runtime": True, "refresh": True}),
        ({"lacking": (PAIR["path"],), "read": "older"}, False, {"write": [PAIR], "refresh": True}),
        ({"runs": "r1"}, False, {"refresh": True}),
        ({"read": "older"}, False, {"refresh": True}),
        ({"state": None}, False, {"start": True}),
        ({"state": None}, True, {"stop": True, "start": True}),
        ({**IDLE, "runtime": "r1"}, False, {"runtime": True, "start": True}),
        (IDLE, False, {"start": True}),
        ({"state": "down"}, False, {"start": True}),
        ({"state": "loading"}, False, {"start": True}),
        ({"enabled": "disabled"}, False, {"start": True}),
        ({"lacking": (PLAN["path"],)}, False, {"write": [PLAN]}),
        ({"supervisor": "failed", "rank": "inactive"}, False, {"start": True}),
        ({"rank": "inactive", "state": "down", "stale": True}, False, {"start": True, "reload": True}),
        ({"kept": ""}, False, {"keep": True}),
        ({"kept": "another"}, False, {"keep": True}),
        ({"kept_runtime": "r1"}, False, {"keep": True}),
        ({"kept_pair": "older"}, False, {"keep": True}),
        ({"kernel": "7.0"}, False, {"remember": True}),  # O-11
    ],
)
def test_what_happens(changes: dict[str, Any], restart: bool, does: dict[str, Any]) -> None:
    head = node(**changes)
    expected = NOTHING | does
    expected["needed"] = bool(does)
    assert plan(head, WANTED, head, "new", "r2", restart, "id") == expected


def test_c11_a_changed_unit_waits_while_the_rank_runs() -> None:
    head = node(lacking=(UNIT["path"],))
    assert plan(head, WANTED, head, "new", "r2", False, "id") == NOTHING | {
        "units_wait": True,
        "needed": True,
    }
    assert plan(node(stale=True), WANTED, node(stale=True), "new", "r2", False, "id") == NOTHING


def test_c11_a_changed_unit_is_written_when_the_pair_stops_anyway() -> None:
    head = node(lacking=(UNIT["path"],), digest="old")
    does = plan(head, WANTED, head, "new", "r2", False, "id")
    assert (does["stop"], does["write"], does["reload"], does["units_wait"]) == (
        True,
        [UNIT],
        True,
        False,
    )


def test_l13_a_change_on_the_worker_alone_restarts_the_pair_by_its_digest() -> None:
    worker, head = node(lacking=(PLAN["path"],)), node(digest="old")
    assert plan(worker, WANTED, head, "new", "r2", False, "id")["stop"]


def test_the_supervisor_is_the_heads_affair() -> None:
    head = node(runs="r1", read="older")
    assert plan(node(), [PLAN, UNIT], head, "new", "r2", False, "id") == NOTHING


def test_an_orphan_of_a_dead_supervisor_keeps_its_unit_until_the_start() -> None:
    head = node(supervisor="failed", digest="old", lacking=(PLAN["path"], UNIT["path"]))
    does = plan(head, WANTED, head, "new", "r2", False, "id")
    assert (does["start"], does["stop"], does["write"], does["reload"]) == (True, False, [PLAN], False)


@pytest.mark.parametrize(
    ("image", "same", "complete", "missing"),
    [
        (True, True, True, []),
        (False, False, True, ["the image"]),
        (True, False, True, ["the head's image"]),
        (True, True, False, ["o/m"]),
        (False, False, False, ["the image", "o/m"]),
    ],
)
def test_m18_what_is_missing_is_named(image: bool, same: bool, complete: bool, missing: list[str]) -> None:
    snapshots, has = [{"repo": "o/m", "revision": "1"}], {"content": "x"}
    seen = {"hf": {"snapshots": {"o/m@1": {"complete": complete}}}, "image": has if image else None}
    assert missing_parts(seen, snapshots, has if same else None) == missing
    assert missing_parts({"hf": None, "image": has}, snapshots, has) == ["o/m"]
