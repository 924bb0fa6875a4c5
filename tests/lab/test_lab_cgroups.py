"""Control groups on a machine with both hierarchies, and on one with v2 alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from twinlab import cgroups


def _hybrid(mount: Path) -> None:
    for name in ("pids", "memory", "unified"):
        (mount / name).mkdir()
        (mount / name / "cgroup.procs").write_text("")
    (mount / "cpu").symlink_to("pids")
    (mount / "unified/cgroup.controllers").write_text("")
    (mount / "unified/cgroup.subtree_control").write_text("")


def _unified(mount: Path, controllers: str = "cpu memory pids") -> None:
    (mount / "cgroup.controllers").write_text(controllers)
    (mount / "cgroup.subtree_control").write_text("cpu")
    (mount / "cgroup.procs").write_text("")
    (mount / "system.slice").mkdir()
    (mount / "system.slice/cgroup.procs").write_text("1")


def test_hybrid(tmp_path: Path) -> None:
    _hybrid(tmp_path)
    assert cgroups.unified_root(tmp_path) == tmp_path / "unified"
    assert cgroups.legacy_roots(tmp_path) == [tmp_path / "memory", tmp_path / "pids"]


def test_unified(tmp_path: Path) -> None:
    _unified(tmp_path)
    assert cgroups.unified_root(tmp_path) == tmp_path
    assert cgroups.legacy_roots(tmp_path) == []


def test_neither(tmp_path: Path) -> None:
    assert cgroups.unified_root(tmp_path) is None
    assert cgroups.legacy_roots(tmp_path / "absent") == []


def test_only_controllers_that_are_not_yet_handed_down_are_enabled(tmp_path: Path) -> None:
    _unified(tmp_path, controllers="cpu pids")
    cgroups.enable_controllers(tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+pids"


def test_no_controllers_nothing_written(tmp_path: Path) -> None:
    _unified(tmp_path, controllers="cpu")
    cgroups.enable_controllers(tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "cpu"


@pytest.mark.lab
def test_labs_that_come_and_go_at_once_do_not_take_each_others_groups() -> None:
    def come_and_go(lab: str) -> None:
        for _ in range(300):
            cgroups.create(f"twinlab-tried/{lab}/h")
            cgroups.remove(f"twinlab-tried/{lab}")

    with ThreadPoolExecutor() as labs:
        list(labs.map(come_and_go, ("one", "other")))
    assert not (cgroups.MOUNT / "twinlab-tried").exists()
    assert not (cgroups.MOUNT / "unified/twinlab-tried").exists()
