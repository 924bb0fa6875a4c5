"""`make demo` and the set-up say in one line why they cannot work here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534


def refusal(
    script: Path, *words: str, path: str, user: int | None = None, interpreter: str = sys.executable
) -> str:
    """What a script of tools/ says when it ends with an error."""
    done = subprocess.run(
        [interpreter, str(script), *words],
        env={"PATH": path},
        user=user,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    return done.stderr


@pytest.fixture
def tools() -> Iterator[Path]:
    """The scripts where another user may read them too: pytest keeps its own folders closed."""
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top, "project/tools")
        shutil.copytree(ROOT / "tools", folder)
        for part in (Path(top), *Path(top).rglob("*")):
            part.chmod(0o755)
        yield folder


def test_without_root_it_says_how_to_run_it(tools: Path) -> None:
    # The tests' own interpreter may lie in a home that only its owner can enter.
    interpreter = next(path for path in ("/usr/bin/python3", sys.executable) if Path(path).exists())
    user = NOBODY if os.geteuid() == 0 else None
    said = refusal(tools / "demo.py", path=os.environ["PATH"], user=user, interpreter=interpreter)
    assert said.splitlines() == [
        "demo: root is needed for namespaces and mounts: run it as `make demo` (which uses sudo)"
    ]


def test_without_apt_it_says_what_the_machines_are_made_of(tools: Path, tmp_path: Path) -> None:
    said = refusal(tools / "demo.py", path=str(tmp_path))
    expected = "no apt-get here" if os.geteuid() == 0 else "root is needed"
    assert expected in said
    assert len(said.splitlines()) == 1


def test_a_failing_installation_shows_its_last_lines(tools: Path) -> None:
    (tools.parent / "wrong.txt").write_text("no-such-package-of-twinserve==0\n")
    (tools.parent / ".venv/bin").mkdir(parents=True)
    pip = tools.parent / ".venv/bin/python"
    pip.write_text("#!/bin/sh\necho 'ERROR: No matching distribution found' >&2; exit 1\n")
    pip.chmod(0o755)
    said = refusal(tools / "bootstrap.py", "wrong.txt", path=os.environ["PATH"])
    assert said.splitlines() == [
        "twinserve: installing wrong.txt failed: ERROR: No matching distribution found"
    ]
