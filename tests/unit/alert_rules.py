"""The alert rules as a pair with the default settings gets them, and their tests, for promtool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import load_product
from engine_data import PRODUCT, settings

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "roles/monitoring/templates/rules.yml.j2"
TESTS = Path(__file__).parent / "alerts.yml"


def rendered(engine: str = "tensorfold", **raw: Any) -> str:
    """The rules file of an engine; its first line tells Ansible how variables are written."""
    header, _, text = TEMPLATE.read_text(encoding="utf-8").partition("\n")
    assert header.startswith("#jinja2:")
    environment = jinja2.Environment(
        variable_start_string="[%",
        variable_end_string="%]",
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    metrics = (PRODUCT if engine == "tensorfold" else load_product(engine)).engine["metrics"]
    return environment.from_string(text).render(
        ansible_managed="Ansible managed",
        __monitoring_settings=settings(**raw),
        __monitoring_metrics=metrics,
    )


def write(folder: Path) -> Path:
    """Lay down rules and tests side by side; returns the tests' path."""
    (folder / "rules.yml").write_text(rendered(), encoding="utf-8")
    path = folder / "alerts.yml"
    path.write_text(TESTS.read_text(encoding="utf-8"), encoding="utf-8")
    return path
