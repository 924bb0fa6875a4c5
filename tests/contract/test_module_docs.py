"""Each module's documentation says exactly what its code takes."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from ansible_collections.twinserve.pair.plugins.action.settings import ActionModule
from ansible_collections.twinserve.pair.plugins.filter import nodes, plans

PLUGINS = Path(__file__).resolve().parents[2] / "collections/ansible_collections/twinserve/pair/plugins"
PACKAGE = "ansible_collections.twinserve.pair.plugins"
NAMES = sorted(path.stem for path in (PLUGINS / "modules").glob("*.py"))
# Its work is done by the action of the same name.
ACTION_ONLY = {"settings"}
FILTERS = nodes.FilterModule().filters() | plans.FilterModule().filters()
SIDECARS = sorted(path.stem for path in (PLUGINS / "filter").glob("*.yml"))


def module(name: str) -> ModuleType:
    return importlib.import_module(f"{PACKAGE}.modules.{name}")


def documented(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(module(name).DOCUMENTATION)
    return found


def meaning(options: Mapping[str, Any], inner: str) -> dict[str, Any]:
    """What both forms say, in one form; `inner` is the key under which nested options are."""
    return {
        name: {
            "type": option.get("type", "str"),
            "elements": option.get("elements"),
            "required": option.get("required", False),
            "default": option.get("default"),
            "choices": option.get("choices"),
            "options": meaning(option.get(inner, {}), inner),
        }
        for name, option in options.items()
    }


def descriptions(options: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, option in options.items():
        yield f"{path}{name}", option.get("description")
        yield from descriptions(option.get("suboptions", {}), f"{path}{name}.")


@pytest.mark.parametrize("name", sorted(set(NAMES) - ACTION_ONLY))
def test_options_are_what_the_code_takes(name: str) -> None:
    assert meaning(documented(name)["options"], "suboptions") == meaning(module(name).ARGUMENTS, "options")


@pytest.mark.parametrize("name", sorted(ACTION_ONLY))
def test_options_of_an_action_are_what_it_takes(name: str) -> None:
    assert set(documented(name)["options"]) == set(ActionModule._VALID_ARGS)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_and_every_promise_is_described(name: str) -> None:
    doc = documented(name)
    assert doc["module"] == name
    assert [option for option, text in descriptions(doc["options"]) if not text] == []
    assert {"check_mode", "diff_mode"} <= set(doc["attributes"])
    returned: dict[str, Any] = yaml.safe_load(module(name).RETURN) or {}
    assert [key for key, value in returned.items() if not (value["description"] and value["returned"])] == []


@pytest.mark.parametrize("name", NAMES)
def test_examples_use_options_that_exist(name: str) -> None:
    options = documented(name)["options"]
    for task in yaml.safe_load(module(name).EXAMPLES):
        used = task.get(f"twinserve.pair.{name}")
        if isinstance(used, dict):
            assert set(used) <= set(options), task["name"]
            needed = {option for option, about in options.items() if about.get("required")}
            assert needed <= set(used), task["name"]


@pytest.mark.parametrize("name", SIDECARS)
def test_a_filters_documentation_names_its_arguments_in_order(name: str) -> None:
    doc = yaml.safe_load((PLUGINS / "filter" / f"{name}.yml").read_text(encoding="utf-8"))["DOCUMENTATION"]
    assert doc["name"] == name
    positional = [word.strip() for word in doc.get("positional", "").split(",") if word.strip()]
    taken = list(inspect.signature(FILTERS[name]).parameters)[1:]
    assert positional == taken
    assert set(doc["options"]) == {"_input", *taken}
