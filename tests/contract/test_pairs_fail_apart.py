"""A failure of one pair ends the run for no other pair, but where nobody can know which nodes are a pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
# Each is a block that takes the link back: a worker whose link stays broken leaves the head as it is.
MEANT = {
    ("playbooks/fabric.yml", "Take the link back"),
    ("roles/operate/tasks/clean.yml", "Take the link back"),
}


def ends_all(tree: Any) -> Iterator[str]:
    """The names of the plays, blocks and tasks below that end the run for all hosts."""
    if isinstance(tree, list):
        for one in tree:
            yield from ends_all(one)
    elif isinstance(tree, dict):
        if "any_errors_fatal" in tree:
            yield str(tree.get("name"))
        for value in tree.values():
            yield from ends_all(value)


WHOLE = {"name": "preflight", "tasks_from": "whole"}
ROLES = ["fabric", "firewall", "container", "model", "gateway", "serve", "monitoring"]
THOUGHTS = {f"ansible.builtin.{name}" for name in ("assert", "debug", "set_fact")}


def asks(task: Mapping[str, Any]) -> bool:
    return task.get("ansible.builtin.import_role") == WHOLE


@pytest.mark.parametrize("role", ROLES)
def test_each_role_asks_whether_the_pair_is_whole_before_it_does_anything(role: str) -> None:
    """At its own beginning, or at that of each file that it includes when something is to be done."""
    tasks = yaml.safe_load((ROOT / f"roles/{role}/tasks/main.yml").read_text())
    if asks(tasks[0]):
        return
    included = [task.get("ansible.builtin.include_tasks") for task in tasks if not THOUGHTS & set(task)]
    assert included
    for name in included:
        assert name, f"{role}/tasks/main.yml does something by itself"
        first = yaml.safe_load((ROOT / f"roles/{role}/tasks/{name}").read_text())[0]
        assert asks(first), f"{role}/tasks/{name} does not ask"


def test_only_taking_the_link_back_ends_the_run_for_all_pairs() -> None:
    files = [
        *ROOT.glob("*.yml"),
        *ROOT.glob("playbooks/*.yml"),
        *ROOT.glob("roles/*/tasks/*.yml"),
        *ROOT.glob("roles/*/handlers/*.yml"),
    ]
    assert len(files) > 50
    found = {
        (str(file.relative_to(ROOT)), name)
        for file in files
        for name in ends_all(yaml.safe_load(file.read_text()))
    }
    assert found == MEANT
    assert "any_errors_fatal" not in (ROOT / "ansible.cfg").read_text()
