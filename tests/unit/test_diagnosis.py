"""What logs.yml takes from a node: everything that helps, nothing that is secret, whatever cannot be read."""

from __future__ import annotations

import gzip
import os
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import diagnosis
from ansible_collections.twinserve.pair.plugins.module_utils.agent import paths
from ansible_collections.twinserve.pair.plugins.module_utils.logs_text import screen
from ansible_collections.twinserve.pair.plugins.modules import diagnosis as module
from fake_programs import Programs
from module_run import run_module

TOKEN = "hf_" + "aBcD1234" * 4


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node with a plan, a state, a kept start and a login at the hub."""
    made = Programs(
        tmp_path / "programs", monkeypatch, "journalctl", "docker", "nvidia-smi", "systemctl", "ip"
    )
    made.answer("journalctl", f"loading\nbearer {TOKEN}\nready\n")
    made.answer("systemctl", "twinserve.service: inactive\n", 3)
    made.answer("nvidia-smi", "Driver/library version mismatch\n", 18)
    for name, text in {
        "etc/rank.json": '{"env": {"API_KEY": "private-key-1"}}',
        "etc/keys/control": "-----BEGIN OPENSSH PRIVATE KEY-----",
        "run/state.json": '{"state": "down"}',
        "run/jobs/twinserve-job-x.log": "downloaded with my-own-password",
        "hf/token": "a-token-of-another-form",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "log").mkdir()
    (tmp_path / "log/20261129-100000-rank0.log.gz").write_bytes(
        gzip.compress(b"said a-token-of-another-form\n")
    )
    (tmp_path / "log/20261129-110000-rank0.log.gz").write_bytes(b"torn")
    monkeypatch.setattr(paths, "LOGS", tmp_path / "log")
    monkeypatch.setattr(diagnosis, "ETC", tmp_path / "etc")
    monkeypatch.setattr(diagnosis, "RUN", tmp_path / "run")
    return tmp_path


def archived(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        files = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        return {name.removeprefix("spark-a/"): file.read() for name, file in files.items() if file}


def test_o08_all_that_helps_is_in_the_archive_without_secrets(node: Path) -> None:
    secrets = ["my-own-password", *diagnosis.secrets_here(str(node / "hf"))]
    listed = diagnosis.write(
        node / "a.tar.gz", "spark-a", diagnosis.parts(lambda: {"hostname": "a"}), secrets
    )

    found = archived(node / "a.tar.gz")
    assert [one["name"] for one in listed] == list(found)
    assert found["rank.log"] == b"loading\nbearer [removed]\nready\n"
    assert found["state/rank.json"] == b'{"env": {"API_KEY": "[removed]"}}'
    assert found["state/state.json"] == b'{"state": "down"}'
    assert found["jobs/twinserve-job-x.log"] == b"downloaded with [removed]"
    assert gzip.decompress(found["starts/20261129-100000-rank0.log.gz"]) == b"said [removed]\n"
    assert found["system/units.txt"] == b"twinserve.service: inactive\n"
    assert not [name for name in found if "keys" in name]


def test_what_cannot_be_read_says_why_and_hides_nothing(node: Path) -> None:
    def broken() -> dict[str, Any]:
        raise OSError("no /proc here")

    diagnosis.write(node / "a.tar.gz", "spark-a", diagnosis.parts(broken), [])

    found = archived(node / "a.tar.gz")
    assert found["state/facts.json"] == b"cannot be read: no /proc here\n"
    assert b"cannot be read" in gzip.decompress(found["starts/20261129-110000-rank0.log.gz"])
    assert found["system/gpu.txt"] == b"Driver/library version mismatch\n"


def test_a_dry_run_names_the_files_and_writes_none(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run_module(module, capsys, check=True, name="spark-a", hf_home=str(node / "hf"))

    assert (answer["changed"], "path" in answer) == (False, False)
    assert {"rank.log", "supervisor.log", "state/state.json"} <= {one["name"] for one in answer["files"]}
    assert answer["tail"] == ["loading", "bearer [removed]", "ready"]
    assert answer["starts"] == ["20261129-100000-rank0.log.gz", "20261129-110000-rank0.log.gz"]


def test_a_run_that_fails_leaves_nothing_and_takes_away_what_a_killed_one_left(
    node: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_FOLDER", node / "tmp")
    ages = {"twinserve-diagnosis-killed": 7200, "twinserve-diagnosis-at-work": 60, "other": 7200}
    for name, age in ages.items():
        (node / "tmp" / name).mkdir(parents=True)
        (node / "tmp" / name / "a.tar.gz").touch()
        os.utime(node / "tmp" / name, (time.time() - age,) * 2)

    answer = run_module(module, capsys, name="no/such-folder")

    assert answer["msg"].startswith("the logs cannot be gathered: ")
    assert {path.name for path in (node / "tmp").iterdir()} == {"twinserve-diagnosis-at-work", "other"}


def test_nothing_but_an_archive_of_its_own_is_removed(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run_module(module, capsys, state="absent", path=str(node / "run/state.json"))

    assert answer["failed"]
    assert (node / "run/state.json").is_file()


GATHERED: dict[str, Any] = {
    "tail": ["loading", "ready"],
    "starts": [],
    "files": [{"name": "rank.log", "bytes": 1}],
}
PAIR: dict[str, Any] = {"ranks": [{"rank": 0, "name": "a"}, {"rank": 1, "name": "b"}]}


def test_o08_the_screen_has_the_end_of_each_ranks_log() -> None:
    hosts: list[dict[str, Any]] = [
        {"inventory_hostname": "a", "__operate_gathered": GATHERED},
        {"inventory_hostname": "b"},
    ]
    assert screen(hosts, PAIR, "/logs", check=False).splitlines() == [
        "rank 0 | loading",
        "rank 0 | ready",
        "rank 0 (a): the whole is in /logs/a.tar.gz (files: 1); earlier starts kept: none",
        "rank 1 (b): nothing was gathered there",
    ]
    assert "would gather 1 files" in screen(hosts, PAIR, "/logs", check=True)
