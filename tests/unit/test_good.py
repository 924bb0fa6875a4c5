"""Two configurations that were good are kept on each node, whole whatever interrupts the keeping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import good
from ansible_collections.twinserve.pair.plugins.module_utils.runtime_archive import point_to, prune
from ansible_collections.twinserve.pair.plugins.modules import good_configuration
from fake_programs import Programs
from module_run import run_module


class Node:
    """A node's files, and what is kept of them."""

    def __init__(self, folder: Path) -> None:
        self.root, self.etc, self.units = folder / "good", folder / "etc", folder / "units"
        self.runtimes = folder / "runtimes"
        for path in (self.etc, self.units, self.runtimes / "r1", self.runtimes / "r2"):
            path.mkdir(parents=True)
        self.rank, self.pair = self.etc / "rank.json", self.etc / "pair.json"
        self.unit = self.units / "twinserve-rank.service"
        self.paths = [str(path) for path in (self.rank, self.pair, self.unit, self.etc / "not-here")]

    def write(self, text: str, runtime: str = "r1") -> None:
        """Stand so."""
        self.rank.write_text(f"rank {text}")
        self.pair.write_text(f'{{"pair": "{text}"}}')
        self.pair.chmod(0o600)
        self.unit.write_text("unit")
        point_to(runtime, self.runtimes)

    def keep(self, which: str, runtime: str = "r1") -> None:
        good.keep({"id": which, "digest": f"d{which}", "runtime": runtime}, self.paths, self.root)

    @property
    def kept(self) -> list[str]:
        return [about["id"] for about in good.read_good(self.root)]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    made = Node(tmp_path)
    read, differing = good.read_good, good.differing
    monkeypatch.setattr(good, "read_good", lambda root=made.root: read(root))
    monkeypatch.setattr(good, "differing", lambda which, root=made.root: differing(which, root))
    monkeypatch.setattr(good, "UNITS", str(made.units))
    monkeypatch.setattr(good_configuration, "RUNTIME", str(made.runtimes))
    monkeypatch.setattr(good_configuration, "_PAIR", made.pair)
    monkeypatch.setattr("os.fchown", lambda *_: None)
    return made


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    programs = Programs(tmp_path, monkeypatch, "systemctl")
    rank_is(programs, "inactive")
    return programs


def rank_is(programs: Programs, active: str) -> None:
    programs.answer("systemctl_show", f"Id=twinserve-rank.service\nActiveState={active}\n")


def restored(capsys: pytest.CaptureFixture[str], which: str, check: bool = False) -> dict[str, Any]:
    return run_module(good_configuration, capsys, check, state="restored", id=which)


def test_the_last_two_are_kept_newest_first(node: Node) -> None:
    for which in ("1", "2", "3"):
        node.write(which)
        node.keep(which)
    assert node.kept == ["3", "2"]
    assert (node.root.stat().st_mode & 0o777, sorted(path.name for path in node.root.iterdir())) == (
        0o700,
        ["current", "previous"],
    )


def test_the_same_configuration_in_another_form_is_no_other_to_go_back_to(node: Node) -> None:
    for which, runtime in (("1", "r1"), ("2", "r1"), ("2", "r2")):
        node.write(which)
        node.keep(which, runtime)
    assert [(about["id"], about["runtime"]) for about in good.read_good(node.root)] == [
        ("2", "r2"),
        ("1", "r1"),
    ]


def test_one_that_serves_again_becomes_the_last_one(node: Node) -> None:
    for which in ("1", "2", "1"):
        node.write(which)
        node.keep(which)
    assert node.kept == ["1", "2"]


@pytest.mark.parametrize("half", ["new", "moved", "swapped"])
def test_a_keeping_that_was_interrupted_leaves_one_that_is_whole(node: Node, half: str) -> None:
    for which in ("1", "2"):
        node.write(which)
        node.keep(which)
    current = node.root / "current"
    if half == "new":
        (node.root / ".new").mkdir()
        (node.root / ".new" / "about.json").write_text("{")
        expected = ["2", "1"]
    elif half == "moved":
        current.rename(node.root / "gone")
        expected = ["1"]
    else:
        current.rename(node.root / ".old")
        expected = ["1"]
    assert node.kept == expected
    node.write("3")
    node.keep("3")
    # What was set aside to be swapped is whole, and comes back.
    assert node.kept == ["3", "2" if half == "swapped" else expected[0]]


class Killed(BaseException):
    """The end of a run in the middle of its work."""


def test_one_that_is_dropped_is_never_half_there(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    for which in ("1", "2"):
        node.write(which)
        node.keep(which)

    def die(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr("shutil.rmtree", die)
        node.keep("3")
    assert node.kept == ["3", "2"]
    node.write("4")
    node.keep("4")
    assert node.kept == ["4", "3"]
    assert sorted(path.name for path in node.root.iterdir()) == ["current", "previous"]


def test_files_and_runtime_are_put_back_as_they_were(
    node: Node, systemctl: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    node.write("1", "r1")
    node.keep("1", "r1")
    node.write("2", "r2")
    node.unit.write_text("another unit")

    answer = restored(capsys, "1")

    assert (answer["changed"], answer["about"]["digest"], answer["pair"]) == (True, "d1", {"pair": "1"})
    assert (node.rank.read_text(), node.unit.read_text()) == ("rank 1", "unit")
    assert node.pair.stat().st_mode & 0o777 == 0o600
    assert (node.runtimes / "current").readlink() == Path("r1")
    assert "systemctl daemon-reload" in systemctl.calls
    assert ("rank 2", "rank 1") in [(one["before"], one["after"]) for one in answer["diff"]]
    again = restored(capsys, "1")
    assert (again["changed"], again["pair"]) == (False, {"pair": "1"})


def test_c11_a_unit_waits_while_a_rank_runs(
    node: Node, systemctl: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    node.write("1")
    node.keep("1")
    node.write("2")
    node.unit.write_text("another unit")
    rank_is(systemctl, "active")
    assert restored(capsys, "1")["changed"]
    assert (node.rank.read_text(), node.unit.read_text()) == ("rank 1", "another unit")
    assert "systemctl daemon-reload" not in systemctl.calls


@pytest.mark.usefixtures("systemctl")
def test_check_mode_shows_what_would_be_put_back(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.write("1", "r1")
    node.keep("1", "r1")
    node.write("2", "r2")
    answer = restored(capsys, "1", check=True)
    assert (answer["changed"], len(answer["diff"]), answer["pair"]) == (True, 3, {"pair": "1"})
    assert node.rank.read_text() == "rank 2"
    assert (node.runtimes / "current").readlink() == Path("r2")


@pytest.mark.usefixtures("systemctl")
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("unknown", "configuration 9: no configuration 9 is kept here"),
        ("edited", "is not as it was kept"),
        ("runtime", "its runtime r1 is no longer in"),
    ],
)
def test_what_cannot_be_put_back_is_refused_and_nothing_is_touched(
    node: Node, capsys: pytest.CaptureFixture[str], damage: str, says: str
) -> None:
    node.write("1", "r1")
    node.keep("1", "r1")
    node.write("2", "r2")
    if damage == "edited":
        (node.root / "current" / str(node.rank).lstrip("/")).write_text("edited")
    if damage == "runtime":
        (node.runtimes / "r1").rmdir()
    answer = restored(capsys, "9" if damage == "unknown" else "1")
    assert answer["failed"]
    assert says in answer["msg"]
    assert node.rank.read_text() == "rank 2"


def test_the_runtime_of_a_kept_configuration_is_not_pruned(node: Node) -> None:
    for number in range(3, 8):
        (node.runtimes / f"r{number}").mkdir()
    point_to("r7", node.runtimes)
    prune(node.runtimes, needed=["r1"])
    assert (node.runtimes / "r1").is_dir()
    assert (node.runtimes / "r7").is_dir()
    assert len([path for path in node.runtimes.iterdir() if not path.is_symlink()]) == 4
