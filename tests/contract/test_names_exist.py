"""Every name of ours that YAML and templates use is a module, a filter or a lookup of the collection."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.action import settings

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ROOT / "collections/ansible_collections/twinserve/pair/plugins"
FILTER_FILES = {path.stem for path in (PLUGINS / "filter").glob("*.py")}
FILTERS = {
    name
    for file in FILTER_FILES
    for name in import_module(f"ansible_collections.twinserve.pair.plugins.filter.{file}")
    .FilterModule()
    .filters()
}
LOOKUPS = {path.stem for path in (PLUGINS / "lookup").glob("*.py")}
TASKS = {path.stem for path in (PLUGINS / "modules").glob("*.py")}
# Modules for users' own playbooks: what they read, the roles get with everything else in `node_facts`.
OFFERED = {"rdma_info"}
NAME = r"twinserve\.pair\.(\w+)"


def used(pattern: str) -> set[str]:
    """Names that match in roles and playbooks."""
    files = [
        path
        for folder in ("roles", "playbooks")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".yml", ".j2") and path.is_file()
    ]
    return {name for path in files for name in re.findall(pattern, path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (rf"(?m)^\s*{NAME}:", TASKS),
        (rf"\|\s*{NAME}", FILTERS),
        (rf"(?:map|select|reject)\('{NAME}'", FILTERS),
        (rf"(?:lookup|query)\('{NAME}'", LOOKUPS),
    ],
    ids=["tasks", "filters", "filters by name", "lookups"],
)
def test_what_is_used_is_there(pattern: str, names: set[str]) -> None:
    assert used(pattern) - names == set()


def test_what_is_there_is_used() -> None:
    """What nothing calls is dead, or a role forgot it; filters with documentation are offered to users."""
    offered = {path.stem for path in (PLUGINS / "filter").glob("*.yml")} | OFFERED
    assert sorted((FILTERS | LOOKUPS | TASKS) - offered - used(NAME)) == []


def test_an_action_has_its_documentation_as_a_module() -> None:
    assert {path.stem for path in (PLUGINS / "action").glob("*.py")} <= TASKS


def test_the_action_that_runs_first_loads_all_filters() -> None:
    """Else each process of a run would load the one that is missing."""
    assert set(vars(settings)) >= FILTER_FILES
