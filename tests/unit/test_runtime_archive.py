"""The runtime's package: the same everywhere, installed whole, with a few older versions kept."""

from __future__ import annotations

import base64
import compileall
import io
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.runtime_archive import (
    install,
    pack,
    prune,
    read,
    version_of,
)
from ansible_collections.twinserve.pair.plugins.modules import runtime
from module_run import run_module


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "agent/__pycache__").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "agent/verbs.py").write_text("WORD = 1\n")
    (folder / "agent/__pycache__/verbs.cpython-311.pyc").write_bytes(b"x")
    (folder / "notes.txt").write_text("not code")
    return folder


def package(folder: Path) -> tuple[str, str]:
    return version_of(read(folder)), pack(read(folder))


def test_only_python_files_go_under_one_name(source: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(pack(read(source))))) as packed:
        assert packed.namelist() == ["twinserve/__init__.py", "twinserve/agent/verbs.py"]


def test_the_version_follows_the_content_alone(source: Path) -> None:
    version, archive = package(source)
    assert len(version) == 12
    os.utime(source / "agent/verbs.py", (1, 1))
    (source / "notes.txt").write_text("changed")
    assert package(source) == (version, archive)
    (source / "agent/verbs.py").write_text("WORD = 2\n")
    changed = version_of(read(source))
    (source / "agent/verbs.py").rename(source / "agent/words.py")
    assert len({version, changed, version_of(read(source))}) == 3


def test_two_runs_that_install_at_once(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other is quicker by a moment: while this one compiles."""
    root = tmp_path / "lib/twinserve"
    version, archive = package(source)
    compiles = compileall.compile_dir

    def meanwhile(folder: Path, quiet: int) -> None:
        monkeypatch.setattr(compileall, "compile_dir", compiles)
        install(archive, version, root)

    monkeypatch.setattr(compileall, "compile_dir", meanwhile)
    install(archive, version, root)
    assert (root / "current/twinserve/agent/verbs.py").read_text() == "WORD = 1\n"
    assert sorted(path.name for path in root.iterdir()) == sorted(["current", version])


def test_current_points_to_what_was_installed_last(source: Path, tmp_path: Path) -> None:
    root = tmp_path / "lib/twinserve"
    version, archive = package(source)
    install(archive, version, root)
    assert (root / "current/twinserve/agent/verbs.py").read_text() == "WORD = 1\n"
    assert (root / "current").readlink() == Path(version)
    (source / "agent/verbs.py").write_text("WORD = 2\n")
    newer, newer_archive = package(source)
    install(newer_archive, newer, root)
    assert (root / "current").readlink() == Path(newer)
    install(archive, version, root)
    assert (root / "current").readlink() == Path(version)
    assert sorted(path.name for path in root.iterdir()) == sorted(["current", version, newer])


def test_what_an_interrupted_installation_left_is_no_obstacle(source: Path, tmp_path: Path) -> None:
    root = tmp_path / "lib"
    (root / ".new-abc").mkdir(parents=True)
    version, archive = package(source)
    install(archive, version, root)
    assert (root / "current").readlink() == Path(version)


def test_another_controller_may_be_quicker(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "lib"
    version, archive = package(source)

    def meanwhile(*_: object, **__: object) -> None:
        monkeypatch.undo()
        install(archive, version, root)

    monkeypatch.setattr(compileall, "compile_dir", meanwhile)
    install(archive, version, root)
    assert sorted(path.name for path in root.iterdir()) == sorted(["current", version])
    assert (root / "current/twinserve/agent/verbs.py").is_file()


def test_the_control_user_can_read_it_whatever_roots_umask_is(source: Path, tmp_path: Path) -> None:
    root = tmp_path / "lib/twinserve"
    root.parent.mkdir()
    version, archive = package(source)
    old = os.umask(0o077)
    try:
        install(archive, version, root)
    finally:
        os.umask(old)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (root, *root.rglob("*")) if path.is_dir()}
    assert modes == {0o755}
    files = [path for path in root.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o644}
    assert any(path.suffix == ".pyc" for path in files), "compiled, since the control user cannot"


def test_the_oldest_go_and_the_current_stays(tmp_path: Path) -> None:
    for age, name in enumerate(("e", "d", "c", "b", "a")):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    (tmp_path / "current").symlink_to("a")
    assert prune(tmp_path) == ["c", "b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "current", "d", "e"]


def test_the_module_installs_once_and_predicts_in_check_mode(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    version, archive = package(source)
    args: dict[str, Any] = {"version": version, "archive": archive, "path": str(tmp_path / "lib")}
    predicted = run_module(runtime, capsys, check=True, **args)
    assert predicted["changed"]
    assert predicted["diff"] == {"before": "runtime: none\n", "after": f"runtime: {version}\n"}
    assert not (tmp_path / "lib").exists()
    assert run_module(runtime, capsys, **args)["changed"]
    again = run_module(runtime, capsys, **args)
    assert (again["changed"], again["removed"]) == (False, [])


def test_a_version_can_be_there_without_being_used(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Programs are named with their version; what a pair runs from stays."""
    root = tmp_path / "lib"
    version, archive = package(source)
    install(archive, version, root)
    (source / "agent/verbs.py").write_text("WORD = 2\n")
    newer, newer_archive = package(source)
    given: dict[str, Any] = {"version": newer, "archive": newer_archive, "path": str(root), "activate": False}
    assert run_module(runtime, capsys, check=True, **given)["changed"]
    assert run_module(runtime, capsys, **given)["changed"]
    assert (root / "current").readlink() == Path(version)
    assert (root / newer / "twinserve/agent/verbs.py").read_text() == "WORD = 2\n"
    assert not run_module(runtime, capsys, **given)["changed"]
    bare = {**given, "path": str(tmp_path / "bare")}
    assert run_module(runtime, capsys, **bare)["changed"]
    assert not (tmp_path / "bare/current").exists()
