"""`make integration` runs two processes: no test is in neither or in both, and no failure is lost."""

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


@pytest.mark.parametrize("fails", ["", "story", "own"])
def test_a_failure_of_either_part_fails_and_the_words_of_each_are_in_one_piece(
    tmp_path: Path, fails: str
) -> None:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/integration.py", tmp_path / "tools")
    (tmp_path / "tests/integration").mkdir(parents=True)
    (tmp_path / "tests/integration/conftest.py").write_text(CONFTEST)
    (tmp_path / "tests/integration/test_it.py").write_text(TEST)

    argv = [sys.executable, str(tmp_path / "tools/integration.py")]
    done = subprocess.run(argv, env={"FAILS": fails}, capture_output=True, text=True, check=False)

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
