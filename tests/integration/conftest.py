"""One simulated pair for the whole run; the tests tell its story in the order of their file names.

Tests that make a pair of their own can run beside the story: `pytest -n 2 --dist loadgroup`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_pair import ROOT, Lab, Play

# Of several workers (gw0, gw1) each has pairs of its own.
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
NAME = os.environ.get("TWINSERVE_TEST_LAB", "test")[: 8 - len(_WORKER)] + _WORKER


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make test-all` adds what is slow; a developer may keep the lab to look at the wreck."""
    parser.addoption("--run-slow", action="store_true", help="also run tests marked slow")
    parser.addoption("--keep-lab", action="store_true", help="use a lab that is up, and leave it up")


# First: pytest-xdist reads the groups after it.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out unless they are asked for; keep together what shares a pair."""
    if not config.getoption("--run-slow"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    story = {item.path for item in items if "lab" in getattr(item, "fixturenames", ())}
    for item in items:
        item.add_marker(pytest.mark.xdist_group("story" if item.path in story else item.path.name))


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
