"""The folder that an image is built from, with the real git and repositories on disk."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import build_context, jobs
from ansible_collections.twinserve.pair.plugins.module_utils.image_recipe import patches_hash
from ansible_collections.twinserve.pair.plugins.module_utils.jobs import JobState
from ansible_collections.twinserve.pair.plugins.modules import image_context
from module_run import run_module

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="needs git")
# Out of order, and with names that a locale may sort in another way.
PATCHES = {"0002-b.patch": b"--- b\n", "0001-a.patch": b"--- a\n", "0001-B.patch": b"--- B\n"}
WHO = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder: Path, *words: str) -> str:
    env = {**os.environ, **WHO, "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(["git", "-C", folder, *words], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(repo: Path, files: dict[str, bytes]) -> str:
    """A new commit in the repository that has these files besides; its id."""
    if not repo.exists():
        repo.mkdir(parents=True)
        git(repo, "init", "--quiet", "--initial-branch", "main")
    for name, content in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_bytes(content)
    git(repo, "add", ".")
    git(repo, "commit", "--quiet", "--message", "x")
    return git(repo, "rev-parse", "HEAD")


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    engine, recipe = tmp_path / "engine.git", tmp_path / "recipe.git"
    first = commit(engine, {"setup.py": b"one"})
    commit(engine, {"setup.py": b"two"})
    patches = commit(recipe, {"README": b"x", **{f"patches/{name}": text for name, text in PATCHES.items()}})
    return {
        "path": str(tmp_path / "build"),
        "clones": {"engine": f"file://{engine}@{first}", "patches": f"file://{recipe}@{patches}"},
        "files": {"Dockerfile": "FROM x\n"},
        "patches": {"folder": "patches", "extras": "av==18.1.0"},
    }


@pytest.fixture
def expected() -> str:
    return patches_hash([b"--- B\n", b"--- a\n", b"--- b\n"], "av==18.1.0")


def test_the_folder_has_the_pinned_files_and_nothing_else(
    given: dict[str, Any], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_module(image_context, capsys, check=True, **given)["changed"]
    assert not Path(given["path"]).exists()
    answer = run_module(image_context, capsys, **given)
    assert (answer["changed"], answer["patches_hash"]) == (True, expected)
    folder = Path(answer["path"])
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert names == ["Dockerfile", "engine/setup.py", *(f"patches/{name}" for name in sorted(PATCHES))]
    assert (folder / "engine/setup.py").read_bytes() == b"one", "the pinned one, not the newest"

    assert run_module(image_context, capsys, path=str(folder), present=False)["changed"]
    assert not folder.exists()
    assert not run_module(image_context, capsys, path=str(folder), present=False)["changed"]


def test_two_runs_at_once_have_a_folder_and_a_label_each(
    given: dict[str, Any],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = run_module(image_context, capsys, **given)
    # The second comes while the first one's build runs.
    monkeypatch.setattr(jobs, "read", lambda _name: JobState("running", 0, 1, "", 0, []))
    second = run_module(image_context, capsys, **given, job="build 1")
    assert first["path"] != second["path"] and second["patches_hash"] == expected
    assert not run_module(image_context, capsys, path=first["path"], present=False, job="build 1")["changed"]
    assert Path(first["path"], "Dockerfile").exists(), "a build reads it"
    monkeypatch.setattr(jobs, "read", lambda _name: JobState("done", 0, 1, "", 0, []))
    assert run_module(image_context, capsys, path=first["path"], present=False, job="build 1")["changed"]
    assert Path(second["path"], "Dockerfile").exists()


def test_what_a_broken_run_left_goes_a_day_later(
    given: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = (Path(given["path"], name) for name in ("old", "new"))
    for folder in (old, new):
        (folder / "engine").mkdir(parents=True)
    os.utime(old, (0, 0))
    run_module(image_context, capsys, **given)
    assert (old.exists(), new.exists()) == (False, True)


def test_patches_that_are_not_the_releases_are_refused(
    given: dict[str, Any], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given["patches"]["hash"] = "cb7c56f7f921"
    answer = run_module(image_context, capsys, **given)
    assert answer["failed"] and answer["msg"] == (
        f"the image cannot be built: the patches of {given['clones']['patches']} have the hash {expected}, "
        "the release says cb7c56f7f921: not built"
    )
    given["patches"] |= {"hash": None, "folder": "elsewhere"}
    assert "has no patch in elsewhere" in run_module(image_context, capsys, **given)["msg"]
    assert not list(Path(given["path"]).iterdir()), "nothing is left of what failed"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("file://{}/engine.git@" + "ab" * 20, "engine.git has no commit " + "ab" * 20),
        ("file://{}/absent.git@" + "ab" * 20, "absent.git cannot be cloned at abababababab: "),
        ("file://{}/engine.git@main", "no git source with a pinned commit"),
    ],
)
def test_a_source_that_cannot_be_had_is_named(
    given: dict[str, Any], tmp_path: Path, source: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given["clones"]["engine"] = source.format(tmp_path)
    answer = run_module(image_context, capsys, **given)
    assert answer["failed"] and said in answer["msg"]


@pytest.mark.parametrize("branch", ["main", "master"])
def test_a_server_that_gives_no_single_commits_is_asked_for_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, branch: str
) -> None:
    repo = tmp_path / "engine.git"
    repo.mkdir()
    git(repo, "init", "--quiet", "--initial-branch", branch)
    first = commit(repo, {"setup.py": b"one"})
    commit(repo, {"setup.py": b"two"})
    # As the oldest form of the protocol has it: only tips of branches.
    for name, value in {"COUNT": "1", "KEY_0": "protocol.version", "VALUE_0": "0"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    build_context.clone(tmp_path / "out", f"file://{repo}", first)
    assert (tmp_path / "out/setup.py").read_bytes() == b"one"
