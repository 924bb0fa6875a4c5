"""A download that is watched on the node: what ends it, what is tried again, and what people are told."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import hf_cache, progress
from ansible_collections.twinserve.pair.plugins.module_utils.weights import __main__ as program
from ansible_collections.twinserve.pair.plugins.module_utils.weights import client, locks
from ansible_collections.twinserve.pair.plugins.module_utils.weights.fetch import Order, fetch
from fake_programs import Programs
from hub_cache import FILES, LARGE, REPO, REVISION, fill, hub_list, sha256

FIRST, SECOND = LARGE
Fetch = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hf_cache, "MANIFESTS", tmp_path / "manifests")
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "progress.json"))
    monkeypatch.setattr(client, "GRACE", 0.5)
    return tmp_path / "hf"


@pytest.fixture
def run(home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Fetch:
    """Run the program with a client that is a line of shell; returns its exit code and lines."""
    quick = {"pause": 0.05}
    monkeypatch.setattr(program, "Order", lambda **given: Order(**{**given, **quick}))

    def fetch_it(client: str, *options: str, stall: float = 5) -> tuple[int, list[str]]:
        words = ["fetch", "--home", str(home), "--repo", REPO, "--revision", REVISION]
        code = program.main([*words, "--stall", str(stall), *options, "--", "sh", "-c", client])
        return code, capfd.readouterr().out.splitlines()

    return fetch_it


def partly(home: Path, *names: str) -> dict[str, Path]:
    """A snapshot that lacks these files; returns where each has to be put."""
    snapshot = fill(home)
    spare = home.parent / "spare"
    spare.mkdir()
    blobs = {}
    for name in names:
        blobs[name] = (snapshot / name).resolve()
        blobs[name].rename(spare / blobs[name].name)
    return blobs


def bring(home: Path, blob: Path) -> str:
    """A line of shell that brings a payload."""
    return f"mv {home.parent}/spare/{blob.name} {blob}"


def lock(home: Path, data: bytes) -> Path:
    path = locks.lock_path(str(home), REPO, sha256(data))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_what_is_whole_by_the_hubs_list_needs_no_client(home: Path, run: Fetch) -> None:
    fill(home)
    assert run("exit 9") == (0, ["o/n@9eaebb7c is here already"])
    assert run("exit 9", "--again")[0] == 9


def test_m05_a_client_that_says_success_is_asked_once_more(home: Path, run: Fetch) -> None:
    blob = partly(home, SECOND)[SECOND]
    twice = f"test -e {home.parent}/again && {bring(home, blob)}; touch {home.parent}/again"
    code, said = run(twice)
    assert (code, said[-1]) == (0, "o/n@9eaebb7c: 4 files")
    assert said[-2] == "the client says success, and 1 of 4 files are missing; trying once more"


def test_m05_an_incomplete_download_is_refused_after_that(home: Path, run: Fetch, tmp_path: Path) -> None:
    partly(home, SECOND, "config.json")
    code, said = run(f"echo x >> {tmp_path}/runs")
    assert (code, said[-1]) == (1, f"download incomplete: 2 of 4 files (config.json, {SECOND})")
    assert (tmp_path / "runs").read_text() == "x\nx\n"


def test_m05_without_the_hubs_list_indexes_and_begun_files_tell(home: Path) -> None:
    files = dict(FILES)
    files["model.safetensors.index.json"] = json.dumps({"weight_map": {"a": FIRST, "b": SECOND}}).encode()
    snapshot = fill(home, tree=False, files=files)
    place = (str(home), REPO, REVISION)
    assert hf_cache.lacking(*place) == ([], 5)
    (snapshot / SECOND).unlink()
    assert hf_cache.lacking(*place) == ([SECOND], 5)
    (home / "hub/models--o--n/blobs/abc.incomplete").write_bytes(b"x")
    assert hf_cache.lacking(*place) == ([SECOND, "abc.incomplete"], 5)
    (snapshot / "config.json").unlink()
    assert hf_cache.lacking(*place) == (["config.json"], 3)


def test_m05_a_client_that_keeps_no_list_is_checked_by_the_one_that_was_noted(
    home: Path, run: Fetch, tmp_path: Path
) -> None:
    """A file of which no index speaks and which was not begun is missed, too."""
    snapshot = fill(home, tree=False)
    path, content = hf_cache.list_note(REPO, REVISION, hub_list())
    path.parent.mkdir()
    path.write_text(content)
    assert run("exit 9") == (0, ["o/n@9eaebb7c is here already"])
    (snapshot / "tokenizer/vocab.txt").unlink()
    assert run("true")[1][-1] == "download incomplete: 1 of 4 files (tokenizer/vocab.txt)"
    manifest = hf_cache.manifest_from_disk(str(home), REPO, REVISION)
    assert hf_cache.differences(snapshot, manifest["files"]) == ["tokenizer/vocab.txt is missing"]


def test_m05_a_list_that_was_torn_is_as_good_as_none(home: Path, run: Fetch) -> None:
    """A loss of power leaves it so; the client writes it anew."""
    fill(home)
    listed = home / f"hub/models--o--n/trees/{REVISION}.json"
    whole = listed.read_text()
    listed.write_text(whole[:20])
    assert run(f"printf '%s' '{whole}' > {listed}") == (0, ["o/n@9eaebb7c: 4 files"])
    assert json.loads(listed.read_text())


def test_m05_an_index_that_was_torn_is_lacking(home: Path, run: Fetch) -> None:
    snapshot = fill(home, tree=False)
    (snapshot / "model.safetensors.index.json").write_text('{"weight_map": {')
    assert "(model.safetensors.index.json)" in run("true")[1][-1]


def test_a_client_that_fails_has_said_why(home: Path, run: Fetch) -> None:
    partly(home, FIRST)
    said = "printf '\\033[31mAccess denied\\033[0m\\nHint: set HF_DEBUG=1\\n\\n'; exit 3"
    assert run(said) == (3, ["Access denied", "Hint: set HF_DEBUG=1", "", "Access denied"])
    assert run("exit 4") == (4, ["no output"])


@pytest.mark.parametrize("end", ["exit 0", "exit 4", "kill -TERM $PPID; sleep 5"])
def test_what_is_secret_goes_when_the_job_ends(home: Path, tmp_path: Path, end: str) -> None:
    partly(home, FIRST)
    secret = tmp_path / "hf-token"
    secret.write_text("hf_x")
    program_path = Path(program.__file__).parents[1]
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/twinserve").symlink_to(program_path)
    words = ["fetch", "--home", str(home), "--repo", REPO, "--revision", REVISION, "--secret", str(secret)]
    client_line = f"test -s {secret} || touch {tmp_path}/lacked; {end}"
    subprocess.run(
        [sys.executable, "-m", "twinserve.weights", *words, "--", "sh", "-c", client_line],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "lib")},
        check=False,
    )
    assert not secret.exists()
    assert not (tmp_path / "lacked").exists()


def test_m17_a_hub_that_is_away_for_a_while_is_waited_for(home: Path, run: Fetch, tmp_path: Path) -> None:
    blob = partly(home, FIRST)[FIRST]
    left = blob.with_name(f"{blob.name}.0a1b2c3d.incomplete")
    away = f"touch {tmp_path}/asked {left}; echo '[Errno 104] Connection reset by peer'; exit 1"
    code, said = run(
        f"test -e {left} && exit 7; if test -e {tmp_path}/asked; then {bring(home, blob)}; else {away}; fi"
    )
    assert (code, said[1:]) == (
        0,
        [
            "[Errno 104] Connection reset by peer; trying again",
            "removed 1 files of downloads that were cut off (0.0 GB)",
            "o/n@9eaebb7c: 4 files",
        ],
    )


def test_m17_a_hub_that_stays_away_is_given_up(home: Path, run: Fetch) -> None:
    partly(home, FIRST)
    code, said = run("echo '[Errno 111] Connection refused'; exit 1", stall=0.8)
    assert code == 1
    assert said.count("[Errno 111] Connection refused; trying again") >= 1
    assert said[-1] == "[Errno 111] Connection refused"


def test_m10_a_lock_that_nobody_holds_is_named(home: Path, run: Fetch) -> None:
    partly(home, FIRST)
    path = lock(home, FILES[FIRST])
    began = time.monotonic()
    code, said = run("sleep 60", stall=0.4)
    assert (code, said[-1]) == (
        1,
        f"no progress for 0.4 s, waiting on {path}; no process holds it: remove it and run again",
    )
    assert time.monotonic() - began < 10
    assert path.exists()


def test_m10_the_whole_process_group_is_killed(home: Path, run: Fetch, tmp_path: Path) -> None:
    """Also those who do not listen, when the one who started them has ended."""
    partly(home, FIRST)
    deaf = f"(trap '' TERM; exec sleep 77) & echo $! > {tmp_path}/pid; wait"
    run(deaf, stall=0.4)
    stat = Path("/proc", (tmp_path / "pid").read_text().strip(), "stat")
    limit = time.monotonic() + 5
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < limit, "it is still there"
        time.sleep(0.05)


@pytest.fixture
def holder(home: Path) -> Iterator[int]:
    """Another process that has the first file's lock."""
    path = lock(home, FILES[FIRST])
    script = (
        "import fcntl,sys,time; f=open(sys.argv[1]); fcntl.flock(f, 2); print(1, flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    yield child.pid
    child.kill()
    child.wait()


def test_m10_a_held_lock_is_left_alone(home: Path, run: Fetch, holder: int) -> None:
    partly(home, FIRST)
    path = lock(home, FILES[FIRST])
    code, said = run("sleep 60", stall=0.4)
    assert code == 1
    assert said[-1] == (
        f"no progress for 0.4 s, waiting on {path}, which process {holder} holds: let it end, and run again"
    )
    assert path.exists()
    assert Path(f"/proc/{holder}").exists()


def test_m10_the_clients_own_lock_means_that_the_network_stands_still(home: Path, run: Fetch) -> None:
    partly(home, FIRST)
    path = lock(home, FILES[FIRST])
    code, said = run(f"exec 9<{path}; flock 9; sleep 60", stall=0.4)
    assert code == 1
    assert said == ["no progress for 0.4 s; trying once more", "no progress for 0.4 s"]


def test_m10_bytes_are_progress(home: Path, run: Fetch) -> None:
    blob = partly(home, FIRST)[FIRST]
    part = f"{blob}.0a1b2c3d.incomplete"
    # Blocks are counted: each step is one more.
    slow = f"for n in 1 2 3 4 5; do head -c 4096 /dev/zero >> {part}; sync {part}; sleep 0.3; done"
    (home / f"hub/models--o--n/trees/{REVISION}.json").unlink()
    code, _ = run(f"{slow}; rm {part}; {bring(home, blob)}", stall=1.0)
    assert code == 0


@pytest.mark.parametrize("text", [b"4194999\nhost\n", b"", b"not a number"])
def test_m10_a_lock_of_presence_is_held_by_whom_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    """A file system without flock."""

    def unsupported(*_: Any) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    path = tmp_path / "a.lock"
    path.write_bytes(text)
    assert locks.read_lock(path) == locks.Lock(path, None)
    path.write_text(f"{os.getpid()}\nhost\n")
    assert locks.read_lock(path) == locks.Lock(path, os.getpid())


def test_m17_a_snapshot_that_is_here_needs_no_hub(home: Path, run: Fetch) -> None:
    snapshot = fill(home, tree=False)
    assert run("exit 9", "--offline") == (0, ["o/n@9eaebb7c is here already"])
    (snapshot / FIRST).resolve().unlink()
    code, said = run("exit 9", "--offline")
    assert (code, said) == (1, ["Hugging Face not reachable, and o/n@9eaebb7c lacks 1 files here"])


def test_what_nobody_can_go_on_with_is_removed_first(home: Path, run: Fetch) -> None:
    blob = partly(home, FIRST)[FIRST]
    left = blob.with_name(f"{blob.name}.0a1b2c3d.incomplete")
    left.write_bytes(b"x")
    resumable = blob.with_name("abc.incomplete")
    resumable.write_bytes(b"x")
    code, said = run(f"test -e {left} || {bring(home, blob)}")
    assert code == 0
    assert said[0] == "removed 1 files of downloads that were cut off (0.0 GB)"
    assert resumable.exists()


def test_what_somebody_is_downloading_is_left(home: Path, run: Fetch, holder: int) -> None:
    blob = partly(home, FIRST)[FIRST]
    left = blob.with_name(f"{blob.name}.0a1b2c3d.incomplete")
    left.write_bytes(b"x")
    assert run(f"test -e {left} && {bring(home, blob)}")[0] == 0
    assert left.exists()


@pytest.mark.parametrize("shared", [False, True])
def test_a_payload_that_was_cut_short_is_fetched_again(home: Path, run: Fetch, shared: bool) -> None:
    snapshot = fill(home, shared=shared)
    blob = home / "hub/models--o--n/blobs" / sha256(FILES[FIRST])
    blob.resolve().write_bytes(b"short")
    payload = blob.resolve()
    code, said = run(f"test -e {blob} || printf '{FILES[FIRST].decode()}' > {blob}")
    assert (code, said[0]) == (0, f"removed {payload}: 5 bytes instead of {len(FILES[FIRST])}")
    assert (snapshot / FIRST).read_bytes() == FILES[FIRST]


def test_the_numbers_are_kept_on_the_node(home: Path, run: Fetch, tmp_path: Path) -> None:
    blob = partly(home, FIRST)[FIRST]
    run(f"sleep 0.3; {bring(home, blob)}; sleep 0.3")
    numbers = json.loads((tmp_path / "progress.json").read_text())
    assert sorted(numbers) == ["bytes", "eta", "rate", "total", "updated"]
    assert numbers["bytes"] == numbers["total"] == sum(len(data) for data in FILES.values())
    assert abs(time.time() - numbers["updated"]) < 60


def test_a_container_is_ended_by_its_name(home: Path, programs_path: Programs) -> None:
    """The docker client's end does not end what it started."""
    partly(home, FIRST)
    programs_path.answer("docker_run", "pulled\n", do="sleep 60")
    argv = ["docker", "run", "--rm", "--name", "twinserve-download", "image"]
    with pytest.raises(RuntimeError, match="no progress"):
        fetch(Order(str(home), REPO, REVISION, argv, stall=0.3, pause=0.05))
    calls = [call for call in programs_path.calls if not call.startswith("docker inspect")]
    removal, start = "docker rm --force twinserve-download", " ".join(argv)
    assert calls == [removal, start, removal, removal, start, removal]


@pytest.fixture
def programs_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    programs = Programs(tmp_path / "node", monkeypatch, "docker")
    programs.answer("docker_inspect", "Error: No such object\n", 1)
    return programs
