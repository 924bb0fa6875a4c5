"""Alert rules: promtool's tests, and that all that they and the dashboard ask for is written by somebody."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from alert_rules import ROOT, TESTS, rendered, write
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import engine_names, load_product

DASHBOARD = json.loads((ROOT / "roles/monitoring/files/dashboard.json").read_text(encoding="utf-8"))
SOURCES = "".join(
    (ROOT / "collections/ansible_collections/twinserve/pair/plugins/module_utils" / name).read_text()
    for name in ("supervisor/metrics.py", "node_metrics.py")
)
PAGE = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")


def rules(engine: str = "tensorfold") -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(rendered(engine))["groups"] for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def queries() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]


PROMTOOL = shutil.which("promtool", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@pytest.mark.skipif(not PROMTOOL, reason="no promtool: `make dev` found no package prometheus")
def test_each_alert_fires_when_it_has_to_and_a_healthy_pair_is_quiet(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(PROMTOOL), "test", "rules", str(write(tmp_path))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_test_in_which_it_fires() -> None:
    fired = set(re.findall(r'alertname="(\w+)"', TESTS.read_text(encoding="utf-8")))
    assert {rule["alert"] for rule in alerts()} == fired


def test_each_alert_says_what_to_do_and_is_in_the_docs() -> None:
    for rule in alerts():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "do"}
        assert f"`{rule['alert'].removeprefix('Twinserve')}`" in PAGE


def test_the_names_of_ours_that_are_asked_for_are_written() -> None:
    asked = " ".join([*queries(), *(rule["expr"] for rule in rules())])
    written = set(re.findall(r'"(twinserve_\w+)"', SOURCES))
    assert set(re.findall(r"\btwinserve_\w+", asked)) - written == set()
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    assert set(re.findall(r"\btwinserve:[\w:]+", asked)) == recorded


@pytest.mark.parametrize("engine", engine_names())
def test_the_engines_names_are_data(engine: str) -> None:
    names = load_product(engine).engine["metrics"]
    recorded = " ".join(rule["expr"] for rule in rules(engine) if "record" in rule)
    assert all(name in recorded for name in names.values())


def test_settings_reach_the_rules() -> None:
    text = rendered(alert_after=7, alert_memory_gib=0.5, alert_first_token=11, alert_canary=13)
    assert "for: 7s" in text
    for bound in ("MemAvailable_bytes < 536870912", "p90 > 11", "canary_seconds > 13"):
        assert bound in text
