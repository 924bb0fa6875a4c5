"""Image and weights from a disk that was carried to the head: the same files, the same checks, no network."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import (
    hf_blobs,
    hf_cache,
    image_load,
    image_source,
    page_cache,
    progress,
)
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


def test_a_disk_that_breaks_leaves_no_fragment(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home.parent / "disk")

    def fail(_: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(page_cache, "settle", fail)
    assert take(home, capsys) == (1, "[Errno 5] Input/output error")
    assert not [path for path in home.rglob("*") if path.is_file()]


@pytest.mark.parametrize("shared", [False, True])
def test_m04_a_take_that_was_cut_off_is_counted(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    disk = home.parent / "disk"
    fill(disk, shared=shared)
    real, left = page_cache.settle, 3 + shared  # with the store's marker

    def fail(path: Path) -> None:
        nonlocal left
        if (left := left - 1) == 0:
            raise OSError(5, "Input/output error")
        real(path)

    monkeypatch.setattr(page_cache, "settle", fail)
    assert take(home, capsys)[0] == 1
    wanted = hf_blobs.by_etag(hf_cache.hub_list(str(disk), REPO, REVISION))
    there = hf_cache.snapshot_state(str(home), REPO, REVISION).blobs
    assert sum(etag in there for etag in wanted) == 2, "each by its own name"


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


class Tar:
    """A Docker that loads one image, `engine:v1`, unless it is told otherwise."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs, self.folder = Programs(folder, monkeypatch, "docker"), folder / "disk"
        self.folder.mkdir()
        self.says("Loaded image: engine:v1\n")
        self.has("{{.Id}}", "sha256:aa7f")
        self.has("{{.Architecture}}", "arm64")
        self.has('{{index .Config.Labels "tf.patches"}}', "cb7c56f7f921")
        self.has("{{json .RootFS.Layers}}", '["sha256:1","sha256:2"]')

    def says(self, text: str) -> None:
        self.programs.answer("docker_load", text)

    def has(self, what: str, text: str) -> None:
        self.programs.answer(f"docker_image_inspect_--format_{what}", f"{text}\n")

    def load(self, **raw: Any) -> tuple[int, str]:
        given = SETTINGS | {"bundle": str(self.folder)} | raw
        argv = image_load.load_argv({"architecture": "arm64"}, given, RELEASE)
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return done.returncode, done.stdout.strip().removeprefix(str(self.folder))

    @property
    def changed(self) -> list[str]:
        """What was named or removed."""
        return [call for call in self.programs.calls if call.startswith(("docker tag", "docker rmi"))]


@pytest.fixture
def tar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tar:
    return Tar(tmp_path, monkeypatch)


@pytest.mark.parametrize("loaded", ["Loaded image: engine:v1", "Loaded image ID: engine:v1"])
def test_an_image_gets_our_name_when_it_is_the_releases(tar: Tar, loaded: str) -> None:
    tar.says(f"{loaded}\n")
    assert tar.load() == (0, "")
    assert tar.changed == [f"docker tag engine:v1 {NAME}"]
    assert f"docker load --input {tar.folder}/image.tar" in tar.programs.calls


@pytest.mark.parametrize(
    ("what", "text", "said"),
    [
        ("{{.Architecture}}", "amd64", "/image.tar is an image for amd64, this machine is arm64"),
        (
            '{{index .Config.Labels "tf.patches"}}',
            "111111111111",
            "/image.tar has tf.patches 111111111111, the release has cb7c56f7f921",
        ),
    ],
)
def test_another_image_is_refused_and_removed(tar: Tar, what: str, text: str, said: str) -> None:
    tar.has(what, text)
    assert tar.load() == (1, said)
    assert tar.changed == ["docker rmi engine:v1"]


def test_an_image_that_was_here_before_is_not_removed(tar: Tar) -> None:
    tar.programs.answer("docker_images", "sha256:0001\nsha256:aa7f\n")
    tar.has("{{.Architecture}}", "amd64")
    assert tar.load()[0] == 1
    assert tar.changed == []


def test_a_tar_brings_one_image(tar: Tar) -> None:
    tar.says("nothing of the kind\n")
    assert tar.load() == (1, "/image.tar brings no image: nothing of the kind")
    tar.says("Loaded image: engine:v1\nLoaded image: engine:latest\n")
    assert tar.load() == (0, ""), "two names of one"
    tar.says("Loaded image: engine:v1\nLoaded image: other:v1\n")
    tar.has("{{.Id}}", "sha256:aa7f\nsha256:bb00")
    assert tar.load() == (1, "/image.tar brings more than one image: engine:v1 other:v1")
    assert tar.changed[-2:] == ["docker rmi engine:v1", "docker rmi other:v1"]


OWN = "sha256:" + "7" * 64
PULLED = f'["registry.example/mine@{OWN}"] ["sha256:1","sha256:2"]'


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        (PULLED, ""),
        (
            None,
            f"/image.txt is missing, which tells that {{}}/image.tar holds {OWN} (docs/operations.md)",
        ),
        (PULLED.replace("777", "888"), f"/image.txt is of another image than {OWN}: "),
        (PULLED.replace("sha256:2", "sha256:3"), "/image.tar has other layers than {}/image.txt says"),
        ("", "/image.txt is empty"),
    ],
)
def test_a_users_own_image_is_known_by_what_lies_beside_it(tar: Tar, beside: str | None, said: str) -> None:
    if beside is not None:
        (tar.folder / "image.txt").write_text(f"{beside}\n" if beside else "")
    code, text = tar.load(image_digest=OWN)
    assert text.startswith(said.replace("{}", str(tar.folder)))
    name = NAME.replace("666666666666", "777777777777")
    assert (code, tar.changed) == (
        (1, ["docker rmi engine:v1"]) if said else (0, [f"docker tag engine:v1 {name}"])
    )


def test_a_users_own_image_is_known_by_its_digest_where_the_store_keeps_that(tar: Tar) -> None:
    tar.has("{{.Id}}", OWN)
    assert tar.load(image_digest=OWN) == (0, "")
