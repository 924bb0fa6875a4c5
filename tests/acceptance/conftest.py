"""Checks against a live pair, for its owner's CI: `pytest --ansible-inventory=inventory tests/acceptance`.

They read only: the inventory says where the pair is, `/etc/twinserve/pair.json` on the head what it serves.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import testinfra
from live_pair import Pair
from testinfra.utils.ansible_runner import AnsibleRunner


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test runs once for each pair of the inventory."""
    if "pair" in metafunc.fixturenames:
        runner = AnsibleRunner(metafunc.config.option.ansible_inventory)
        heads = [name for name in runner.get_hosts() if str(runner.get_variables(name).get("rank")) == "0"]
        metafunc.parametrize("pair", heads, indirect=True)


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Pair:
    """The pair of the head that this test is for."""
    inventory = request.config.option.ansible_inventory
    open_host: Callable[[str], Any] = lambda name: testinfra.get_host(  # noqa: E731
        f"ansible://{name}?ansible_inventory={inventory}", sudo=True
    )
    head = open_host(request.param)
    config = json.loads(head.file("/etc/twinserve/pair.json").content_string)
    workers = [open_host(member["name"]) for member in config["ranks"][1:]]
    return Pair((head, *workers), config)
