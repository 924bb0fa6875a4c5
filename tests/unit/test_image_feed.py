"""What the head's image key runs on a worker: all reaches `docker load`, no load outlives its stream."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import image_feed
from fake_programs import Programs

DATA = os.urandom(3_000_001)
LOAD = "sudo_-n"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """A `docker load` that keeps what it gets, and notes when that ended."""
    programs = Programs(tmp_path, monkeypatch, "sudo")
    programs.answer(LOAD, do=f"cat >>{tmp_path}/loaded; echo end >>{tmp_path}/loaded")
    return programs


def stream() -> subprocess.Popen[bytes]:
    """One that is open."""
    return subprocess.Popen([sys.executable, "-I", image_feed.__file__], stdin=subprocess.PIPE)


def loaded(programs: Programs, enough: int) -> bytes:
    """What came, once that is so much."""
    path = programs.folder / "loaded"
    while not path.exists() or path.stat().st_size < enough:
        time.sleep(0.05)
    return path.read_bytes()


def test_c03_all_that_comes_is_loaded(programs: Programs) -> None:
    with stream() as whole:
        whole.communicate(DATA)
    assert (whole.returncode, loaded(programs, 1)) == (0, DATA + b"end\n")


def test_c03_a_load_that_fails_is_heard_of(programs: Programs) -> None:
    programs.answer(LOAD, "no room", code=1)
    with stream() as broken, pytest.raises(BrokenPipeError):
        assert broken.stdin
        while True:
            broken.stdin.write(DATA)
    assert broken.returncode == 1


def test_c03_a_load_to_which_nothing_comes_ends(tmp_path: Path) -> None:
    """Its other end is open: the head's is gone, and this one never heard of it."""
    (ours, theirs), path = os.pipe(), tmp_path / "passed"
    os.write(theirs, b"half")
    with path.open("wb", buffering=0) as target:
        image_feed.pass_on(ours, target.fileno(), 0.1)
    assert path.read_bytes() == b"half"


def test_c03_a_new_stream_ends_the_one_before(programs: Programs) -> None:
    with stream() as first:
        assert first.stdin
        first.stdin.write(b"half")
        first.stdin.flush()
        assert loaded(programs, 4) == b"half"
        with stream() as second:
            second.communicate(b"whole")
        assert first.wait() == 1
    assert loaded(programs, 1) == b"halfend\nwholeend\n"


def test_the_image_keys_proof_loads_nothing(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_ORIGINAL_COMMAND", "true")
    programs.answer("sudo_-n_-l")
    with stream() as proof:
        proof.wait()
    assert (proof.returncode, programs.calls) == (0, ["sudo -n -l /usr/bin/docker load"])
