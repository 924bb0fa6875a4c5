"""One simulated pair for the whole run; the tests tell its story in the order of their file names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_pair import ROOT, Lab, Play

NAME = os.environ.get("TWINSERVE_TEST_LAB", "test")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make test-all` adds what is slow; a developer may keep the lab to look at the wreck."""
    parser.addoption("--run-slow", action="store_true", help="also run tests marked slow")
    parser.addoption("--keep-lab", action="store_true", help="use a lab that is up, and leave it up")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out unless they are asked for."""
    if not config.getoption("--run-slow"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Two bare hosts, made for this run and removed after it."""
    state = Path(os.environ.get("TWINSERVE_LAB", ROOT / ".lab"))
    found = Lab(NAME, state / NAME)
    keep = request.config.getoption("--keep-lab")
    if not keep:
        found.verb("down", "--wipe")
    found.verb("up")
    yield found
    if not keep:
        found.verb("down", "--wipe")


@pytest.fixture(scope="session")
def converged(lab: Lab) -> Play:
    """The pair after the first site.yml; run once."""
    return lab.play("site.yml").succeeded()
