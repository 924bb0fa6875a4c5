"""Two runs that would change one node: who waits for whom, and what either is told."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.run_lock import (
    HeldError,
    Holder,
    Process,
    find_process,
    let_go,
    read,
    ssh_session,
    take,
)

ALICE = Holder("alice@laptop", "serve.yml", "10:03:22 UTC", "laptop/1", Process(41, 7000))
BOB = Holder("bob@desk", "site.yml", "10:04:00 UTC", "desk/2", Process(52, 8000))


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@pytest.fixture
def session() -> Iterator[subprocess.Popen[bytes]]:
    """What another controller's run came by."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def alive(holder: Holder, session: subprocess.Popen[bytes]) -> Holder:
    return replace(holder, session=find_process(session.pid))


def test_the_first_run_takes_it_once(lock: Path) -> None:
    assert read(lock) is None
    take(ALICE, "", path=lock)
    take(ALICE, "", path=lock)  # its own later steps come to it again
    assert read(lock) == ALICE


def test_a_second_run_is_told_who_is_at_work(lock: Path, session: subprocess.Popen[bytes]) -> None:
    alices = alive(ALICE, session)
    take(alices, "", path=lock)
    for seen in ("", alices.id, None):
        with pytest.raises(HeldError) as caught:
            take(BOB, seen, path=lock)
        assert str(caught.value) == (
            "serve.yml by alice@laptop (pid 41, since 10:03:22 UTC) is changing this pair:"
            " run this again when that has ended"
        )
    assert read(lock) == alices


def test_a_run_whose_session_has_ended_is_in_nobodys_way(
    lock: Path, session: subprocess.Popen[bytes]
) -> None:
    alices = alive(ALICE, session)
    take(alices, "", path=lock)
    session.kill()
    session.wait()
    take(BOB, alices.id, path=lock)
    assert read(lock) == BOB


def test_a_run_that_has_let_go_is_in_nobodys_way(lock: Path, session: subprocess.Popen[bytes]) -> None:
    """Its ssh session may live on: it is kept, and shared with what is run next."""
    alices = alive(ALICE, session)
    take(alices, "", path=lock)
    let_go(BOB, path=lock)
    with pytest.raises(HeldError, match="is changing this pair"):
        take(BOB, alices.id, path=lock)
    let_go(ALICE, path=lock)
    take(BOB, alices.id, path=lock)
    assert read(lock) == BOB


def test_what_was_changed_since_the_look_is_looked_at_again(lock: Path) -> None:
    take(ALICE, "", path=lock)
    with pytest.raises(HeldError) as caught:
        take(BOB, "", path=lock)
    assert str(caught.value) == (
        "serve.yml by alice@laptop (pid 41, since 10:03:22 UTC) has changed this pair meanwhile:"
        " run this again"
    )
    take(BOB, None, path=lock)  # who decides nothing by a look is let through
    assert read(lock) == BOB


def test_of_the_same_controller_it_is_the_controller_that_knows(lock: Path) -> None:
    take(ALICE, "", path=lock)
    second = replace(ALICE, run=Process(99, 7100))
    with pytest.raises(HeldError, match="is changing this pair"):
        take(second, ALICE.id, path=lock)
    take(second, ALICE.id, gone=ALICE.id, path=lock)
    assert read(lock) == second


def test_a_later_process_with_the_same_id_is_another_run(
    lock: Path, session: subprocess.Popen[bytes]
) -> None:
    found = find_process(session.pid)
    assert found is not None
    take(replace(ALICE, session=replace(found, started=found.started - 1)), "", path=lock)
    take(BOB, ALICE.id, path=lock)
    assert read(lock) == BOB


def test_on_the_controller_itself_the_run_counts_not_the_terminal(session: subprocess.Popen[bytes]) -> None:
    """A login shell outlives it, and below tmux there is none."""
    run = find_process(session.pid)
    assert run is not None
    assert replace(ALICE, run=run).at(os.getpid()).session == run


def test_a_session_is_found_above_sudo(tmp_path: Path) -> None:
    tree = {10: ("sshd", 1, 5), 20: ("sshd-session", 10, 6), 30: ("sh", 20, 7), 40: ("sudo", 30, 8)}
    for pid, (name, parent, started) in tree.items():
        folder = tmp_path / f"proc/{pid}"
        folder.mkdir(parents=True)
        (folder / "comm").write_text(f"{name}\n")
        rest = " ".join(["0"] * 17)
        (folder / "stat").write_text(f"{pid} (a ) b) S {parent} {rest} {started} 0\n")
    assert ssh_session(40, tmp_path) == Process(20, 6)
    assert ssh_session(os.getpid(), tmp_path) is None
