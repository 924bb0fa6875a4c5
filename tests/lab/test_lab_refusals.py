"""The lab says why it cannot run, in one line and with exit code 3, before it changes anything."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from twinlab import cgroups, cli, ownership, requirements
from twinlab.disk import ballast_bytes
from twinlab.errors import LabError, Refusal
from twinlab.layout import PACKAGE


def test_a_taken_port_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        reason = requirements.port_reason("127.0.0.1", [port])
    assert reason is not None and reason.startswith(f"port {port} on 127.0.0.1 is taken")
    assert requirements.port_reason("127.0.0.1", [port]) is None


def test_an_address_that_is_not_there_yet_can_be_checked() -> None:
    assert requirements.port_reason("198.19.255.254", [3142]) is None


def test_too_little_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinlab.disk.free_real_gib", lambda folder: 3.0)
    assert (
        requirements.folder_reason(tmp_path, base_is_built=False)
        == f"needs 6 GiB free in {tmp_path}, which has 3.0"
    )


def test_not_root(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("TWINSERVE_LAB", str(tmp_path))
    assert cli.main(["up"]) == 3
    assert capsys.readouterr().err == "lab: needs root: run it with sudo\n"
    assert not list(tmp_path.iterdir())


def test_not_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert requirements.machine_reason() == "needs Linux (this is darwin)"


_HOLD = """
import sys
from pathlib import Path
from twinlab import ownership
ownership.RECORDS = Path(sys.argv[1])
with ownership.locked("spark", "up"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_busy_lab_says_who_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "RECORDS", tmp_path)
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with (
        pytest.raises(Refusal, match=rf"lab spark is busy: `lab up` since [\d:]+, pid {holder.pid}$"),
        ownership.locked("spark", "down"),
    ):
        pass
    with ownership.locked("other", "down"):
        pass
    holder.kill()
    holder.communicate()
    with ownership.locked("spark", "down"):  # a killed holder holds nothing
        pass


def test_a_lab_of_another_folder_is_refused_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "RECORDS", tmp_path / "records")
    monkeypatch.setattr("twinlab.network.addresses_of_this_machine", list)
    (tmp_path / "records").mkdir()
    lab = ownership.claim(tmp_path / "one", "spark")
    monkeypatch.setattr(cgroups, "pids", lambda group: [1])
    with pytest.raises(Refusal, match=f"a lab named spark is up from {tmp_path / 'one'}"):
        ownership.claim(tmp_path / "two", "spark")
    monkeypatch.setattr(cgroups, "pids", lambda group: [])
    ownership.claim(tmp_path / "two", "spark")  # nothing of it runs any more
    assert ownership.remembered_network(tmp_path / "one", "spark") == lab.network


def test_two_labs_at_once_get_two_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "RECORDS", tmp_path / "records")
    monkeypatch.setattr("twinlab.network.addresses_of_this_machine", list)
    monkeypatch.setattr("twinlab.subnets.preferred_block", lambda name: 7)
    (tmp_path / "records").mkdir()
    assert [ownership.claim(tmp_path, name).network.block for name in ("one", "two", "one")] == [7, 8, 7]


def test_a_lab_that_never_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TWINSERVE_LAB", str(tmp_path))
    assert cli.main(["env", "--name", "absent"]) == 1
    assert (
        capsys.readouterr().err == f"lab: there is no lab absent in {tmp_path}: run `lab up --name absent`\n"
    )


def test_free_space_that_cannot_be() -> None:
    gib = 1024**3
    assert ballast_bytes(free_now=100 * gib, ballast_now=0, wanted_gib=20) == 80 * gib
    assert ballast_bytes(free_now=20 * gib, ballast_now=80 * gib, wanted_gib=60) == 40 * gib
    with pytest.raises(LabError, match="120 GiB cannot be free: at most 100"):
        ballast_bytes(free_now=20 * gib, ballast_now=80 * gib, wanted_gib=120)
