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
    parser.addoption(
        "--part",
        choices=("story", "own"),
        help="only the files with a test on the story's pair, or only those with pairs of their own alone",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests unless they are asked for, and what is not of the part that is asked for."""
    story = {item.path for item in items if "lab" in getattr(item, "fixturenames", ())}
    part = config.getoption("--part")
    left_out = [
        item
        for item in items
        if (item.get_closest_marker("slow") and not config.getoption("--run-slow"))
        or (part and (item.path in story) is not (part == "story"))
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


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
