"""The copy to the worker: over both rails, shown, and right after whatever broke it in the middle."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from lab_pair import ROOT, Lab, Play

RAILS = ("enp1s0f0np0", "enP2p1s0f0np0")
REPO, REVISION = "test/large", "c" * 40
FOLDER = "/home/nvidia/.cache/huggingface/hub/models--test--large"
PARTIAL = "/home/nvidia/.cache/huggingface/.twinserve-partial"
MANIFEST = f"/var/lib/twinserve/manifests/test--large@{REVISION}.json"
REPORT = "/run/twinserve/progress/copy-*test-large*.json"
SIZE = 4 << 20
SIZES = [72 << 20, *[SIZE] * 18]
TOTAL = sum(SIZES)
COPY = ("playbooks/model.yml", "-e", f"model_id={REPO}", "-e", f"model_revision={REVISION}")
# A verified snapshot on the head, as a download leaves it.
MAKE = f"""
import hashlib, json, os, pathlib, shutil
folder = pathlib.Path("{FOLDER}")
files, digests = {{}}, {{}}
for part in ("blobs", "snapshots/{REVISION}"):
    (folder / part).mkdir(parents=True, exist_ok=True)
for number, size in enumerate({SIZES}):
    data = os.urandom(size)
    digest, name = hashlib.sha256(data).hexdigest(), f"model-{{number:05d}}.safetensors"
    (folder / "blobs" / digest).write_bytes(data)
    (folder / "snapshots/{REVISION}" / name).symlink_to(f"../../blobs/{{digest}}")
    files[name], digests[name] = len(data), f"sha256:{{digest}}"
for path in (folder, *folder.rglob("*")):
    shutil.chown(path, "nvidia", "nvidia") if not path.is_symlink() else os.lchown(path, 1000, 1000)
pathlib.Path("{MANIFEST}").write_text(json.dumps({{"files": files, "digests": digests}}))
"""


@pytest.fixture(scope="module")
def large(lab: Lab, converged: Play) -> Iterator[Lab]:
    """The pair, stopped, with a model on the head that takes a while to copy."""
    lab.play("playbooks/stop.yml").succeeded()
    lab.root(lab.hosts[0], "python3", "-c", MAKE)
    yield lab
    for host in lab.hosts:
        lab.root(host, "rm", "-rf", FOLDER, PARTIAL, MANIFEST)


@pytest.fixture(autouse=True)
def bare_worker(large: Lab) -> Iterator[None]:
    """Nothing of it on the worker, and rails as fast as they are."""
    large.root(large.hosts[1], "rm", "-rf", FOLDER, PARTIAL, MANIFEST)
    large.root(large.hosts[0], "sh", "-c", f"rm -f {REPORT}")  # that of the copy before
    yield
    limit(large, None)
    large.verb("mend-rail", "2")


def limit(lab: Lab, rate: str | None) -> None:
    """What the head can send on each rail."""
    for netdev in RAILS:
        how = ["tbf", "rate", rate, "burst", "64k", "latency", "100ms"] if rate else []
        verb = "replace" if rate else "del"
        script = f"tc qdisc {verb} dev {netdev} root {' '.join(how)} 2>/dev/null; true"
        lab.root(lab.hosts[0], "sh", "-c", script)


def sent(lab: Lab) -> list[int]:
    """Bytes that the head has sent on each rail."""
    files = [f"/sys/class/net/{netdev}/statistics/tx_bytes" for netdev in RAILS]
    return [int(line) for line in lab.root(lab.hosts[0], "cat", *files).split()]


def progress(lab: Lab) -> dict[str, Any]:
    """What the copy reports; empty before it does."""
    text = lab.root(lab.hosts[0], "sh", "-c", f"cat {REPORT} 2>/dev/null; true")
    found: dict[str, Any] = json.loads(text) if text.strip() else {}
    return found


def here(lab: Lab) -> int:
    """Bytes of the model that the worker has, whole files and begun ones."""
    script = f"cat {FOLDER}/blobs/* {PARTIAL}/* 2>/dev/null | wc -c"
    return int(lab.root(lab.hosts[1], "sh", "-c", script))


def whole(lab: Lab) -> bool:
    """Whether the worker has every file, each with the right bytes, and nothing is left over."""
    hashes = f"cd {FOLDER}/blobs && for f in *; do echo $f $(sha256sum < $f); done"
    script = f"{hashes}; ls -d {PARTIAL} 2>/dev/null; true"
    lines = [line.split()[:2] for line in lab.root(lab.hosts[1], "sh", "-c", script).splitlines()]
    links = lab.root(lab.hosts[1], "find", "-L", f"{FOLDER}/snapshots", "-type", "f").split()
    return len(lines) == len(links) == len(SIZES) and all(len(set(line)) == 1 for line in lines)


def wait_for(what: Callable[[], bool], seconds: float = 90) -> None:
    """Until it is so; the bound only ends a test that would hang."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.3)


@contextmanager
def running(lab: Lab) -> Iterator[subprocess.Popen[str]]:
    """The copy's play, under way."""
    argv = [str(ROOT / ".venv/bin/ansible-playbook"), "-i", str(lab.inventory), *COPY]
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1"}
    play = subprocess.Popen(
        argv,
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield play
    finally:
        if play.poll() is None:
            os.killpg(play.pid, signal.SIGKILL)
        play.communicate()


def said(output: str) -> str:
    """The output as one line: texts are broken where the line is full."""
    return " ".join(output.split())


def test_m01_m22_the_copy_uses_both_rails_and_is_shown(large: Lab) -> None:
    limit(large, "24mbit")
    before = sent(large)

    run = large.play(*COPY).succeeded()

    moved = [after - was for was, after in zip(before, sent(large), strict=True)]
    assert min(moved) > 0.3 * TOTAL and sum(moved) < 1.1 * TOTAL
    numbers = r"0\.\d of 0\.2 GB \(\d+%\), \d+\.\d MB/s on 2 rails"
    assert re.search(f"{large.hosts[1]}: copy of {REPO}: {numbers}", run.output), run.output
    assert whole(large)
    assert progress(large)["bytes"] == progress(large)["total"] == TOTAL
    assert large.play(*COPY).succeeded().changed == 0


def test_a_rail_that_is_cut_in_the_middle_leaves_the_work_to_the_other(large: Lab) -> None:
    limit(large, "40mbit")
    with running(large) as play:
        wait_for(lambda: progress(large).get("bytes", 0) > TOTAL // 5)
        large.verb("cut-rail", "2")
        wait_for(lambda: progress(large).get("how") == "on 1 rail")
        limit(large, None)
        output, _ = play.communicate(timeout=120)

    assert play.returncode == 0, output
    assert re.search(r"warn rail to \S+ is lost \(.+\): going on over \S+", said(output)), output
    assert whole(large)


def test_a_second_run_goes_on_where_controller_and_job_were_killed(large: Lab) -> None:
    limit(large, "40mbit")
    with running(large) as play:
        wait_for(lambda: progress(large).get("bytes", 0) > TOTAL // 3)
        os.killpg(play.pid, signal.SIGKILL)
    units = "systemctl kill --signal=KILL 'twinserve-job-copy-*'"
    large.root(large.hosts[0], "sh", "-c", units)
    had = here(large)
    limit(large, None)
    assert TOTAL // 4 < had < TOTAL
    assert large.root(large.hosts[1], "sh", "-c", f"ls {FOLDER}/snapshots/* 2>/dev/null; true") == ""
    before = sum(sent(large))

    large.play(*COPY).succeeded()

    assert sum(sent(large)) - before < 1.1 * (TOTAL - had) + (1 << 20)
    assert whole(large)


def test_a_killed_controller_alone_stops_nothing_and_the_next_run_attaches(large: Lab) -> None:
    limit(large, "40mbit")
    with running(large) as play:
        wait_for(lambda: progress(large).get("bytes", 0) > TOTAL // 5)
        os.killpg(play.pid, signal.SIGKILL)

    run = large.play(*COPY).succeeded()

    assert f"{large.hosts[1]}: copy of {REPO} already running since" in run.output
    assert whole(large)


def test_the_workers_power_goes_in_the_middle(large: Lab) -> None:
    limit(large, "40mbit")
    with running(large) as play:
        wait_for(lambda: progress(large).get("bytes", 0) > TOTAL // 3)
        large.root(large.hosts[1], "sync")
        large.verb("power-cut", large.hosts[1])
        output, _ = play.communicate(timeout=180)
    assert play.returncode != 0, output
    large.verb("power-on", large.hosts[1])
    limit(large, None)
    before, had = sum(sent(large)), here(large)
    assert had > TOTAL // 4

    large.play(*COPY).succeeded()

    assert sum(sent(large)) - before < 1.1 * (TOTAL - had) + (2 << 20)
    assert whole(large)


def test_m06_a_flipped_byte_is_found_and_a_truncated_blob_is_mended(large: Lab) -> None:
    worker = large.hosts[1]
    large.play(*COPY).succeeded()
    first, second = large.root(
        worker, "sh", "-c", f"find {FOLDER}/blobs -size -5M -type f | sort | head -2"
    ).split()
    large.root(worker, "sh", "-c", f"printf x | dd of={first} bs=1 seek=1000000 conv=notrunc")

    run = large.play(*COPY, "-e", "model_verify=sha256").refused()

    assert f"sha256 differs: remove {first} and run again" in said(run.output)
    large.root(worker, "rm", first)
    large.root(worker, "truncate", "-s", "-1000", second)
    before = sum(sent(large))
    large.play(*COPY, "-e", "model_verify=sha256").succeeded()
    assert sum(sent(large)) - before < 1.2 * SIZE + (1 << 20), "one file, and the end of another"
    assert whole(large)


def test_m21_an_unknown_host_key_is_refused_with_the_play_that_records_it(large: Lab) -> None:
    known = "/etc/twinserve/known_hosts"
    large.root(large.hosts[0], "mv", known, f"{known}.away")
    large.root(large.hosts[0], "touch", known)
    try:
        run = large.play(*COPY).refused()
    finally:
        large.root(large.hosts[0], "mv", f"{known}.away", known)

    text = "head does not know the worker's host key: run the fabric play (it records it)"
    assert text in said(run.output)
    assert here(large) == 0


def test_m22_over_the_lan_only_when_no_rail_answers(large: Lab) -> None:
    head, worker = large.hosts
    address = large.node(worker).interface("enP7s7").addresses[0]
    setting = "/etc/ssh/sshd_config.d/only-lan.conf"
    large.root(worker, "sh", "-c", f"echo ListenAddress {address} > {setting} && systemctl restart ssh")
    before = sum(sent(large))
    try:
        run = large.play(*COPY).succeeded()
    finally:
        large.root(worker, "sh", "-c", f"rm {setting} && systemctl restart ssh")

    assert re.search(rf"warn copying over the LAN \({address}\): ssh to \S+ and \S+ failed", said(run.output))
    assert sum(sent(large)) - before < TOTAL // 10
    assert whole(large)
