"""Image and weights from a disk that was carried to the head: the same files, the same checks, no network."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import hf_cache, image_source, progress
from ansible_collections.twinserve.pair.plugins.module_utils.weights import __main__ as program
from fake_programs import Programs
from hub_cache import FILES, LARGE, REPO, REVISION, fill

FIRST, SECOND = LARGE
DIGEST = "sha256:" + "6" * 64
SETTINGS: dict[str, Any] = {
    "image": "ghcr.io/example/engine",
    "image_digest": DIGEST,
    "image_source": "auto",
    "prepare": "auto",
    "rebuild": False,
    "bundle": "/mnt/disk",
}
RELEASE: dict[str, Any] = {
    "engine": "tensorfold",
    "patches_label": "tf.patches",
    "image_label": "cb7c56f7f921",
    "defaults": {"image_digest": DIGEST},
}
NAME = "localhost/twinserve/tensorfold:666666666666"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "progress.json"))
    return tmp_path / "hf"


def take(home: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    disk = str(home.parent / "disk")
    place = ["--home", str(home), "--repo", REPO, "--revision", REVISION, "--bundle", disk]
    code = program.main(["take", *place])
    return code, capsys.readouterr().out.strip()


@pytest.mark.parametrize("shared", [False, True])
def test_all_that_a_snapshot_is_made_of_comes(
    home: Path, capsys: pytest.CaptureFixture[str], shared: bool
) -> None:
    fill(home.parent / "disk", shared=shared)
    code, said = take(home, capsys)
    assert code == 0, said
    snapshot = hf_cache.snapshot_folder(str(home), REPO, REVISION)
    assert {name: (snapshot / name).read_bytes() for name in FILES} == FILES
    assert hf_cache.hub_list(str(home), REPO, REVISION)
    assert not [path for path in home.rglob("*.twinserve-part")]
    numbers = json.loads((home.parent / "progress.json").read_text())
    assert sorted(numbers) == ["bytes", "eta", "rate", "total", "updated"]


def test_what_is_here_is_left_and_what_is_cut_off_is_begun_anew(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(home.parent / "disk")
    take(home, capsys)
    snapshot = hf_cache.snapshot_folder(str(home), REPO, REVISION)
    before = {name: (snapshot / name).resolve().stat().st_ino for name in LARGE}
    (snapshot / SECOND).resolve().write_bytes(b"short")
    assert take(home, capsys)[0] == 0
    after = {name: (snapshot / name).resolve().stat().st_ino for name in LARGE}
    assert (before[FIRST] == after[FIRST], before[SECOND] == after[SECOND]) == (True, False)
    assert hf_cache.lacking(str(home), REPO, REVISION) == ([], 4)


def test_what_comes_is_the_users(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give files away")
    fill(home.parent / "disk")
    disk = str(home.parent / "disk")
    place = ["--home", str(home), "--repo", REPO, "--revision", REVISION, "--bundle", disk]
    home.mkdir()
    os.chown(home, 65534, -1)
    assert program.main(["take", *place, "--user", "nobody"]) == 0
    assert {path.lstat().st_uid for path in home.rglob("*")} == {65534}


def test_a_bundle_that_is_not_whole_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = fill(home.parent / "disk")
    (snapshot / FIRST).resolve().unlink()
    code, said = take(home, capsys)
    assert (code, said) == (1, f"{home.parent}/disk lacks 1 files of o/n@9eaebb7c ({FIRST})")
    assert not home.exists()


def test_nobody_pulls_when_there_is_a_bundle() -> None:
    """The worker gets the head's."""
    image = {"reference": NAME, "content": "x", "labels": {}, "architecture": "arm64"}
    nodes: list[dict[str, Any]] = [{"image": image, "images": [image]}, {"image": None, "images": []}]
    found = image_source.steps(nodes, SETTINGS, RELEASE)
    assert found == [
        {"load": False, "pull": False, "build": False, "stream": False},
        {"load": False, "pull": False, "build": False, "stream": True},
    ]
    without = image_source.steps(nodes, SETTINGS | {"bundle": None}, RELEASE)
    assert without[1]["pull"]


@pytest.mark.parametrize(
    ("loaded", "architecture", "patches", "said"),
    [
        ("Loaded image: engine:v1", "arm64", "cb7c56f7f921", None),
        ("Loaded image ID: sha256:aa7f", "arm64", "cb7c56f7f921", None),
        ("Loaded image: engine:v1", "amd64", "cb7c56f7f921", "is an image for amd64, this machine is arm64"),
        (
            "Loaded image: engine:v1",
            "arm64",
            "111111111111",
            "has tf.patches 111111111111, the release has cb7c",
        ),
        ("nothing of the kind", "arm64", "cb7c56f7f921", "brings no image: nothing of the kind"),
    ],
)
def test_an_image_gets_our_name_when_it_is_the_releases(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    loaded: str,
    architecture: str,
    patches: str,
    said: str | None,
) -> None:
    programs = Programs(tmp_path, monkeypatch, "docker")
    programs.answer("docker_load", f"{loaded}\n")
    programs.answer("docker_image_inspect_--format_{{.Architecture}}", f"{architecture}\n")
    label = '{{index .Config.Labels "tf.patches"}}'
    programs.answer(f"docker_image_inspect_--format_{label}", f"{patches}\n")
    argv = image_source.load_argv({"architecture": "arm64"}, SETTINGS, RELEASE)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    tagged = [call for call in programs.calls if call.startswith("docker tag")]
    assert programs.calls[0] == "docker load --input /mnt/disk/image.tar"
    if said is None:
        assert (done.returncode, tagged) == (0, [f"docker tag {loaded.split(': ')[1]} {NAME}"]), done.stderr
    else:
        assert (done.returncode, tagged) == (1, [])
        assert said in done.stdout


def test_a_users_own_image_has_a_label_of_its_own() -> None:
    own = SETTINGS | {"image_digest": "sha256:" + "7" * 64}
    argv = image_source.load_argv({"architecture": "arm64"}, own, RELEASE)
    assert argv[-1] == ""
