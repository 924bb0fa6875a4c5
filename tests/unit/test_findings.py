"""What doctor.yml says of a pair: what to mend first, what to look at, what the logs tell."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.filter.doctor import FilterModule
from ansible_collections.twinserve.pair.plugins.module_utils import findings
from ansible_collections.twinserve.pair.plugins.module_utils.pair_report import report
from test_status_text import CONFIG, HOSTS, STATE, gateway, node

FILTERS = FilterModule().filters()
RULES = {
    "failures": [{"pattern": "NCCL", "cure": "x", "refusal": True}],
    "alarms": [{"pattern": "Socket", "cure": "y"}],
}
SIGN = {"line": "NCCL error 2", "where": "rank.log", "at": None, "count": 3, "cure": "set split: false"}


def host(name: str, seen: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    facts = {"twinserve_node": seen} if seen else {}
    return {"inventory_hostname": name, "ansible_facts": facts, **more}


def examined(head: dict[str, Any], worker: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Findings of a pair and the screen that shows them."""
    seen = {one["inventory_hostname"]: one["ansible_facts"].get("twinserve_node") for one in (head, worker)}
    pair = report("pair1", HOSTS, {name: one for name, one in seen.items() if one})
    found = FILTERS["doctor_findings"]([head, worker], pair)
    return found, FILTERS["doctor_screen"](found, pair)


SERVING = node(state=STATE, pair_config=CONFIG)


def test_a_pair_that_is_well_has_no_findings() -> None:
    found, text = examined(host("spark-a", SERVING), host("spark-b", node()))
    assert (found, text) == ([], "pair1: healthy; nothing was found")


def test_a_certificate_that_ends_soon_is_to_be_looked_at() -> None:
    _, text = examined(host("spark-a", gateway(left=12)), host("spark-b", node()))
    assert text.splitlines() == [
        "pair1: healthy",
        "  to be looked at:",
        "  - the gateway's certificate ends on 2029-03-04: run serve.yml, which renews it",
    ]


def test_what_has_to_be_mended_comes_first() -> None:
    preflight = {
        "faults": ["spark-b: no GPU: nvidia-smi lists no GPU"],
        "warnings": ["warn worker: CmaFree"],
        "needs": ["spark-b needs: image up to 38 GB"],
    }
    worker = host(
        "spark-b", node(), __preflight_found=preflight, __operate_signs={"found": [SIGN], "unread": []}
    )
    found, text = examined(host("spark-a", SERVING), worker)
    assert [one["kind"] for one in found] == ["fault", "warning", "warning", "log"]
    assert text.splitlines() == [
        "pair1: healthy",
        "  to be mended:",
        "  - spark-b: no GPU: nvidia-smi lists no GPU",
        "  to be looked at:",
        "  - spark-b: warn worker: CmaFree",
        "  - spark-b: needs: image up to 38 GB",
        "  known failures in the logs:",
        "  - spark-b: NCCL error 2 (3 times, last in rank.log): set split: false",
    ]


def test_settings_that_are_refused_and_a_node_that_is_off_are_findings() -> None:
    said = "settings are refused (pair1):\n- parallel is 9\n- kv is fp4"
    other = host("spark-b", None, __operate_refused="spark-a says what is wrong with the settings of pair1")
    _, text = examined(host("spark-a", SERVING, __operate_refused=said), other)
    assert text.splitlines() == [
        "pair1: degraded",
        "  to be mended:",
        "  - spark-b: is unreachable from here: the checks of the nodes are left out",
        "  - spark-a: settings: parallel is 9",
        "  - spark-a: settings: kv is fp4",
        "  to be looked at:",
        "  - degraded: spark-b is unreachable from here",
        "  - without settings the checks of the nodes are left out",
    ]


@pytest.mark.parametrize(
    ("head", "kinds"),
    [
        (node("inactive", state=STATE, pair_config=CONFIG), []),
        (node(state=None, pair_config=None), []),
        (node(state=STATE | {"state": "down", "detail": "gave up"}, pair_config=CONFIG), ["fault"]),
        (node(state=STATE | {"digest": "sha256:old"}, pair_config=CONFIG), ["warning"]),
    ],
    ids=["stopped", "bare", "down", "drift"],
)
def test_a_pair_that_was_stopped_is_not_sick(head: dict[str, Any], kinds: list[str]) -> None:
    worker = (
        node("inactive") if head["services"]["twinserve.service"]["ActiveState"] == "inactive" else node()
    )
    found, _ = examined(host("spark-a", head), host("spark-b", worker))
    assert [one["kind"] for one in found] == kinds


def test_what_the_link_would_be_refused_for_is_told_once() -> None:
    plans = [{"error": "no carrier on spark-b", "warnings": ["rail 1 is not used"]}] * 2
    assert [(one.kind, one.text) for one in findings.of_link(plans) if one.where == ""] == [
        ("fault", "link: no carrier on spark-b"),
        ("warning", "link: rail 1 is not used"),
    ]


def test_the_engines_failures_are_known_with_and_without_settings() -> None:
    wanted = [{"pattern": "NCCL", "cure": "x"}, {"pattern": "Socket", "cure": "y"}]
    deployed = host("spark-a", SERVING | {"pair_config": CONFIG | {"patterns": RULES}})
    assert FILTERS["engine_signs"]([deployed, host("spark-b", None)]) == wanted
    planned = host("spark-b", None)
    planned["ansible_facts"]["twinserve_release"] = RULES
    assert FILTERS["engine_signs"]([planned]) == wanted
    assert FILTERS["engine_signs"]([host("spark-a", node())]) == []
