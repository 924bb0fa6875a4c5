"""The dashboard is one that Grafana takes: each field is in its schema, for each kind of panel."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from alert_rules import ROOT
from grafana_schema import faults

DASHBOARD: dict[str, Any] = json.loads((ROOT / "roles/monitoring/files/dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
# One panel of each kind, by its place.
ROW, STAT, SERIES = (
    next(n for n, panel in enumerate(PANELS) if panel["type"] == kind)
    for kind in ("row", "stat", "timeseries")
)


def test_every_field_is_in_grafanas_schema_and_of_its_kind() -> None:
    assert faults(DASHBOARD) == []


def test_panels_have_a_place_a_query_and_known_variables() -> None:
    names = {one["name"] for one in DASHBOARD["templating"]["list"]}
    ids = [panel["id"] for panel in PANELS]
    assert len(set(ids)) == len(ids)
    for panel in PANELS:
        assert bool(panel.get("targets")) is (panel["type"] != "row")
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(PANELS))) <= names


def test_no_two_panels_are_at_one_place() -> None:
    taken = [
        (column, line)
        for place in (panel["gridPos"] for panel in PANELS)
        for column in range(place["x"], place["x"] + place["w"])
        for line in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(column for column, _ in taken) < 24


@pytest.mark.parametrize(
    ("path", "name", "spelt"),
    [
        ("", "refresh", "refreshes"),
        ("templating/list/1", "refresh", "reload"),
        (f"panels/{ROW}", "collapsed", "colapsed"),
        (f"panels/{SERIES}", "fieldConfig", "fieldConfigs"),
        (f"panels/{SERIES}/gridPos", "w", "width"),
        (f"panels/{SERIES}/targets/0", "legendFormat", "legend"),
        (f"panels/{SERIES}/fieldConfig/defaults", "unit", "units"),
        (f"panels/{SERIES}/fieldConfig/defaults/custom", "fillOpacity", "opacity"),
        (f"panels/{SERIES}/options/legend", "placement", "place"),
        (f"panels/{STAT}/options", "textMode", "texts"),
        (f"panels/{STAT}/options/reduceOptions", "calcs", "calculations"),
        (f"panels/{STAT}/fieldConfig/defaults/thresholds/steps/0", "color", "colour"),
    ],
)
def test_a_field_that_is_misspelt_is_found(path: str, name: str, spelt: str) -> None:
    other = copy.deepcopy(DASHBOARD)
    part = _at(other, path)
    part[spelt] = part.pop(name)
    assert f"{path and '/'}{path}/{spelt} is unknown" in faults(other)


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("", "editable", "yes"),
        (f"panels/{ROW}", "collapsed", "no"),
        (f"panels/{SERIES}", "type", "timeserie"),
        (f"panels/{SERIES}/gridPos", "w", "8"),
        (f"panels/{SERIES}/fieldConfig/defaults/custom", "showPoints", "seldom"),
        (f"panels/{SERIES}/options/tooltip", "mode", "all"),
        (f"panels/{STAT}/targets/0", "instant", "true"),
        (f"panels/{STAT}/datasource", "type", "prometheuz"),
        (f"panels/{STAT}/options", "colorMode", "values"),
        (f"panels/{STAT}/options/reduceOptions", "calcs", "last"),
    ],
)
def test_a_value_of_another_kind_is_found(path: str, name: str, value: str) -> None:
    other = copy.deepcopy(DASHBOARD)
    _at(other, path)[name] = value
    assert faults(other) != []


def _at(dashboard: dict[str, Any], path: str) -> dict[str, Any]:
    part: Any = dashboard
    for step in filter(None, path.split("/")):
        part = part[int(step) if isinstance(part, list) else step]
    found: dict[str, Any] = part
    return found
