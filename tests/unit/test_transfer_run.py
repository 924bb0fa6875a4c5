"""A whole copy between two caches, with programs that stand in for rsync and ssh."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import content_check, hf_cache, progress
from ansible_collections.twinserve.pair.plugins.module_utils.hf_blobs import PARTIAL
from ansible_collections.twinserve.pair.plugins.module_utils.transfer import run, streams, words
from ansible_collections.twinserve.pair.plugins.module_utils.transfer.__main__ import main
from ansible_collections.twinserve.pair.plugins.module_utils.transfer.plan import PlanError, Way, load, parse
from ansible_collections.twinserve.pair.plugins.module_utils.transfer.run import streams_for
from hub_cache import FILES, REPO, REVISION, fill

MAIN, TWIN, LAN = "198.51.100.2", "203.0.113.2", "192.0.2.12"

SSH = """#!/bin/sh
while [ $# -gt 2 ]; do shift; done
address=${1#*@}
[ -e "$WORKER/../dead-$address" ] || exit 1
echo "ssh: connect to host $address port 22: No route to host" >&2
exit 255
"""


class Nodes:
    """Head and worker, each a folder; the plan of a copy of the whole snapshot."""

    def __init__(self, top: Path, shared: bool = False) -> None:
        self.top, self.head, self.worker = top, top / "head", top / "worker"
        self.worker.mkdir()
        self.snapshot = fill(self.head, shared=shared)
        self.plan = top / "plan.json"
        self.write(
            rails=[{"address": MAIN, "source": "198.51.100.1"}, {"address": TWIN}], lan={"address": LAN}
        )

    def write(self, **more: object) -> None:
        (self.top / "names").write_text(
            "".join(f"{name}\n" for name in hf_cache.transfer_list(self.snapshot))
        )
        given: dict[str, object] = {
            "worker": "spark-b",
            "user": "bob",
            "source": f"{self.head}/hub",
            "target": "hub/",
            "files": f"{self.top}/names",
            "streams": 1,
        }
        self.plan.write_text(json.dumps({**given, **more}))

    def copy(self) -> int:
        return main(["transfer", str(self.plan)])

    def mark(self, word: str, address: str) -> None:
        (self.top / f"{word}-{address}").touch()

    def arrived(self) -> dict[str, bytes]:
        there = self.worker / self.snapshot.relative_to(self.head)
        return {name: path.read_bytes() for name, path in hf_cache.walk(there) if path.exists()}

    def lines(self, name: str) -> list[str]:
        path = self.top / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    script = Path(__file__).with_name("fake_rsync.py").read_text().split("\n", 1)[1]
    (folder / "rsync").write_text(f"#!{sys.executable} -S\n{script}")
    # It is asked for a command that the key is not for: the last word but one says where.
    (folder / "ssh").write_text(SSH)
    for name in ("rsync", "ssh"):
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "progress.json"))
    monkeypatch.setenv("WORKER", str(tmp_path / "worker"))
    monkeypatch.setattr(streams, "_PAUSE", 0.01)


@pytest.fixture
def nodes(tmp_path: Path, programs: None) -> Nodes:
    return Nodes(tmp_path)


@pytest.mark.parametrize("shared", [False, True])
def test_m01_both_layouts_arrive_as_they_are(tmp_path: Path, programs: None, shared: bool) -> None:
    nodes = Nodes(tmp_path, shared=shared)
    assert nodes.copy() == 0
    assert nodes.arrived() == FILES
    links = [path.relative_to(nodes.worker) for path in nodes.worker.rglob("*") if path.is_symlink()]
    assert len(links) == len(FILES) * (2 if shared else 1)


def test_m04_a_blob_that_is_a_link_comes_with_its_payload(tmp_path: Path, programs: None) -> None:
    """By the payload alone a second run could not tell that it has arrived."""
    nodes = Nodes(tmp_path, shared=True)
    payloads = load(parse(nodes.plan.read_text())).payloads
    etags = {name: path.readlink().name for name, path in hf_cache.walk(nodes.snapshot)}
    blobs = {f"models--o--n/blobs/{etag}" for etag in etags.values()}
    assert {link for one in payloads for link in one.links} == blobs
    for one in payloads:
        assert all((nodes.head / "hub" / link).samefile(nodes.head / "hub" / one.name) for link in one.links)
    nodes.copy()
    sent = nodes.lines("bytes")
    (nodes.worker / "hub" / sorted(blobs)[0]).unlink()
    assert nodes.copy() == 0
    assert (nodes.arrived(), nodes.lines("bytes")) == (FILES, sent), "the link alone is sent again"


def test_a_copy_that_outlasts_its_last_connection_still_ends_whole(nodes: Nodes) -> None:
    """It is made at the beginning; a worker that hears nothing on it for five minutes ends it."""
    nodes.write(rails=[{"address": MAIN, "source": "198.51.100.1"}])
    nodes.mark("late", MAIN)
    assert nodes.copy() == 0
    assert nodes.arrived() == FILES
    assert not (nodes.top / f"late-{MAIN}").exists()


def test_a_worker_whose_last_words_were_lost_is_asked_again(
    nodes: Nodes, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.write(rails=[{"address": MAIN, "source": "198.51.100.1"}], streams=1)
    nodes.mark("mute", MAIN)
    nodes.mark("full", MAIN)
    assert nodes.copy() == 1
    assert "no space is left on the worker: make room and run it again" in capsys.readouterr().out


def test_a_last_connection_that_could_not_be_begun_is_made_again(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits with it is another thread: what goes wrong there must not end a whole copy."""
    real = subprocess.Popen
    refused: list[list[str]] = []

    def popen(argv: list[str], **more: Any) -> Any:
        sends = argv[0] == "rsync" and not any(
            word.startswith(("--partial-dir", "--dry-run", "--ignore-existing")) for word in argv
        )
        if sends and not refused:
            refused.append(argv)
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return real(argv, **more)

    monkeypatch.setattr(subprocess, "Popen", popen)
    assert nodes.copy() == 0
    assert (len(refused), nodes.arrived()) == (1, FILES)


def test_what_is_there_is_not_sent_again(nodes: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    nodes.copy()
    sent = nodes.lines("bytes")
    assert len(sent) == len(FILES)
    capsys.readouterr()
    assert nodes.copy() == 0
    assert nodes.lines("bytes") == sent
    assert capsys.readouterr().out == "nothing to copy: every file is there\n"


def test_only_what_is_missing_or_damaged_is_sent(nodes: Nodes) -> None:
    nodes.copy()
    payloads = sorted(path for path in nodes.worker.rglob("*") if path.is_file() and not path.is_symlink())
    whole = [path.read_bytes() for path in payloads]
    payloads[0].unlink()
    payloads[1].write_bytes(whole[1][:-1])
    (nodes.top / "bytes").unlink()
    assert nodes.copy() == 0
    assert sorted(line.split()[1] for line in nodes.lines("bytes")) == [path.name for path in payloads[:2]]
    assert nodes.arrived() == FILES


def test_a_rail_cut_in_the_middle_leaves_the_work_to_the_other(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_LARGE", 1)
    nodes.mark("cut", TWIN)
    assert nodes.copy() == 0
    assert nodes.arrived() == FILES
    assert (nodes.worker / PARTIAL).is_dir()
    assert not [path for path in nodes.worker.rglob("*.Zuf4Ll")], "each grew where room was made"


@pytest.mark.parametrize("relative", [False, True])
def test_the_second_run_goes_on_where_the_first_was_cut(
    nodes: Nodes, relative: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "_LARGE", 1)
    if relative:
        monkeypatch.setenv("RELATIVE", "1")
    nodes.write(rails=[{"address": MAIN}])
    nodes.mark("cut", MAIN)
    assert nodes.copy() == 1
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"the last rail, to {MAIN}, is lost: ssh: connect to host {MAIN} port 22: No route to host; "
        "run it again to go on"
    )
    assert nodes.arrived() == {}, "links come last: nothing looks whole"
    half = next(path for path in nodes.worker.rglob(f"{PARTIAL}/*") if path.stat().st_size)
    had = half.stat().st_size
    (nodes.top / f"dead-{MAIN}").unlink()
    assert nodes.copy() == 0
    sizes = {name: int(size) for size, name in (line.split() for line in nodes.lines("bytes"))}
    assert had + sizes[half.name] == next(
        path.stat().st_size for path in nodes.head.rglob(half.name) if path.is_file()
    )
    assert nodes.arrived() == FILES


def test_m22_over_the_lan_only_when_no_rail_answers_and_with_a_warning(
    nodes: Nodes, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.write(rails=[{"address": MAIN}], lan={"address": LAN})
    nodes.mark("dead", MAIN)
    assert nodes.copy() == 0
    warning = f"copying over the LAN ({LAN}): ssh to {MAIN} failed"
    assert capsys.readouterr().out.splitlines()[0] == f"warn {warning}"
    found = progress.read(nodes.top / "progress.json")
    assert found and found["warnings"] == [warning]
    assert nodes.arrived() == FILES


def test_m22_a_rail_that_answers_keeps_the_copy_off_the_lan(nodes: Nodes) -> None:
    nodes.mark("dead", MAIN)
    assert nodes.copy() == 0
    assert not [call for call in nodes.lines("calls") if call.endswith(LAN)]
    assert nodes.arrived() == FILES


def test_a_worker_that_answers_nowhere_is_named_with_every_address(
    nodes: Nodes, capsys: pytest.CaptureFixture[str]
) -> None:
    for address in (MAIN, TWIN, LAN):
        nodes.mark("dead", address)
    assert nodes.copy() == 1
    said = capsys.readouterr().out
    assert said.startswith(f"head does not reach spark-b by ssh ({MAIN}: ssh: connect to host {MAIN}")
    assert f"{LAN}: ssh" in said


def test_without_a_rail_it_goes_over_the_lan_or_says_so(
    nodes: Nodes, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.write(rails=[], lan=None, streams=0)
    assert nodes.copy() == 1
    assert capsys.readouterr().out.splitlines()[-1] == "head does not reach spark-b by ssh (no rail)"
    nodes.write(rails=[], lan={"address": LAN}, streams=0)
    assert nodes.copy() == 0
    assert f"warn copying over the LAN ({LAN}): there is no rail" in capsys.readouterr().out
    assert nodes.arrived() == FILES


def test_the_report_ends_with_every_byte(nodes: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    assert nodes.copy() == 0
    found = progress.read(nodes.top / "progress.json")
    total = sum(map(len, FILES.values()))
    assert found and (found["bytes"], found["total"], found["how"]) == (total, total, "on 2 rails")
    assert re.match(r"copied 0 MB in \d+ s, ", capsys.readouterr().out)


def test_a_missing_program_is_said(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert nodes.copy() == 1
    assert capsys.readouterr().out == "rsync is not installed on the head\n"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"worker": "b", "rails": 3}'])
def test_a_plan_that_cannot_be_read_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    assert main(["transfer", str(path)]) == 1
    assert "the plan of the copy cannot be read" in capsys.readouterr().out


def test_a_file_that_went_away_since_is_named(nodes: Nodes) -> None:
    plan = parse(nodes.plan.read_text())
    blob = next(path for path in nodes.head.rglob("*") if path.is_file() and "blobs" in path.parts)
    blob.unlink()
    with pytest.raises(PlanError, match=f"{blob.name} is gone since it was listed"):
        load(plan)


def test_files_of_one_name_do_not_meet_in_the_folder_for_partial_ones(nodes: Nodes) -> None:
    hub = nodes.head / "hub"
    for folder in ("a", "b"):
        (hub / folder).mkdir()
        (hub / folder / "config.json").write_text(folder)
    with (nodes.top / "names").open("a") as names:
        names.write("a/config.json\nb/config.json\n")
    found = load(parse(nodes.plan.read_text()))
    assert len(found.payloads) == len(FILES)
    assert found.last[:2] == ("a/config.json", "b/config.json")
    assert nodes.copy() == 0
    assert (nodes.worker / "hub/b/config.json").read_text() == "b"


def test_m21_each_connection_has_our_key_and_known_hosts_and_is_bound_to_its_rail(nodes: Nodes) -> None:
    plan = parse(nodes.plan.read_text())
    shell = words.ssh(plan, Way(MAIN, 2222, "198.51.100.1", "enp1s0f1np1"))
    options = [shell[place + 1] for place, word in enumerate(shell) if word == "-o"]
    assert shell[:3] == ["ssh", "-F", "none"]
    assert {
        "IdentityFile=/etc/twinserve/keys/copy",
        "IdentitiesOnly=yes",
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        "UserKnownHostsFile=/etc/twinserve/known_hosts",
        "BindAddress=198.51.100.1",
        "BindInterface=enp1s0f1np1",
    } <= set(options)
    assert shell[-4:] == ["-p", "2222", "-c", "aes128-gcm@openssh.com"]
    bare = " ".join(words.ssh(plan, Way(LAN)))
    assert "Bind" not in bare


def test_m01_links_stay_links_and_users_options_come_last(nodes: Nodes) -> None:
    nodes.write(rails=[{"address": MAIN}], options=["--bwlimit=1g"])
    plan = parse(nodes.plan.read_text())
    for argv in (words.send(plan, plan.rails[0]), words.finish(plan, plan.rails[0])):
        assert "--archive" in argv
        assert not [word for word in argv if word.startswith(("--copy-", "-L", "--inplace"))]
        assert argv.index("--bwlimit=1g") > argv.index("--size-only")
        assert argv[-2:] == [f"{nodes.head}/hub/", f"bob@{MAIN}:hub/"]
    assert f"--partial-dir=/{PARTIAL}" in words.send(plan, plan.rails[0])


@pytest.mark.parametrize(("cores", "rails", "streams"), [(2, 2, 2), (20, 2, 2), (72, 1, 4), (32, 2, 4)])
def test_streams_follow_the_machine(cores: int, rails: int, streams: int) -> None:
    assert streams_for(cores, rails) == streams


def test_the_manifest_of_the_head_is_what_the_worker_must_have(nodes: Nodes) -> None:
    nodes.copy()
    there = hf_cache.snapshot_folder(str(nodes.worker), REPO, REVISION)
    wanted = hf_cache.manifest_from_disk(str(nodes.head), REPO, REVISION)
    assert hf_cache.differences(there, wanted["files"]) == []
    assert content_check.wrong_content(there, wanted["digests"]) == []
