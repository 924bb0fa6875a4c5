"""`make integration` runs two rows of parts: no test is in neither or in both, and no failure is lost."""

from __future__ import annotations

import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = """
def pytest_addoption(parser):
    parser.addoption("--part")

def pytest_configure(config):
    config.addinivalue_line("markers", "real_engine: none here")
    config.addinivalue_line("markers", "lab: those of the lab itself")
"""
LAB = """
import os, pytest

@pytest.mark.lab
def test_lab():
    assert os.environ.get("FAILS") != "lab"
"""
MOLECULE = """#!/bin/sh
test "$FAILS" != molecule
"""
# Both are under way before either goes on, and so their words come at the same time.
TEST = """
import os, pathlib, time
import pytest

@pytest.mark.parametrize("one", ["a b", "c"])
def test_one(request, one):
    part = request.config.getoption("--part")
    here = pathlib.Path(__file__).parent
    (here / part).touch()
    while not (here / "story").exists() or not (here / "own").exists():
        time.sleep(0.02)
    print("\\n".join([f"said by {part}, {os.environ['TWINSERVE_TEST_LAB']}"] * 200))
    assert part != os.environ.get("FAILS")
"""


def collected(*words: str) -> set[str]:
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--run-slow", *words, "tests/integration"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    return {line for line in done.stdout.splitlines() if "::" in line}


def test_each_test_is_in_one_of_the_parts() -> None:
    story, own = collected("--part=story"), collected("--part=own")
    assert story | own == collected()
    assert not story & own
    assert "tests/integration/test_2_site.py::test_site_ends_with_an_answer" in story
    assert any("test_7_stations.py" in test for test in own)


def ran(place: Path, fails: str) -> subprocess.CompletedProcess[str]:
    """The program with tests of its own, of which those of a part may fail."""
    (place / "tools").mkdir()
    shutil.copy(ROOT / "tools/integration.py", place / "tools")
    for name, text in (("integration/test_it.py", TEST), ("lab/test_lab.py", LAB)):
        path = place / "tests" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (place / "tests/conftest.py").write_text(CONFTEST)
    molecule = place / "tools/molecule.sh"
    molecule.write_text(MOLECULE)
    molecule.chmod(0o755)
    argv = [sys.executable, str(place / "tools/integration.py")]
    return subprocess.run(argv, env={"FAILS": fails}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("fails", ["", "story", "own"])
def test_a_failure_of_either_part_fails_and_the_words_of_each_are_in_one_piece(
    tmp_path: Path, fails: str
) -> None:
    done = ran(tmp_path, fails)

    assert done.returncode == (1 if fails else 0)
    for part in ("story", "own"):
        (suite,) = xml.parse(tmp_path / f"build/integration-{part}.xml").getroot().iter("testsuite")
        assert suite.get("failures") == ("2" if part == fails else "0")
        assert "test_it.py::test_one[a b]" in (tmp_path / f"build/integration-{part}.log").read_text()
        result = "FAILED" if part == fails else "PASSED"
        assert f"{part}  50% {result} test_it.py::test_one[a b]\n" in done.stdout
    said = [line for line in done.stdout.splitlines() if line.startswith("said by")]
    assert len(set(said)) == (1 if fails else 0)
    if fails:
        piece = done.stdout.partition(f"== integration tests: {fails}\n")[2].partition("\n== integration")[0]
        assert piece.count("\nsaid by") == len(said) == 400


@pytest.mark.parametrize("fails", ["lab", "molecule"])
def test_what_comes_after_the_pairs_fails_the_run_too(tmp_path: Path, fails: str) -> None:
    done = ran(tmp_path, fails)
    assert done.returncode == 1
    assert "own 100% PASSED" in done.stdout
    assert (
        f"lab 100% {'FAILED' if fails == 'lab' else 'PASSED'} tests/lab/test_lab.py::test_lab" in done.stdout
    )
    assert "== integration tests: molecule" in done.stdout
