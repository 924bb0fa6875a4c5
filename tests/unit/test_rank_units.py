"""The units that systemd gets: clean by its own checker, and with the promises that keep a pair one thing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from engine_data import PRODUCT

FILES = Path(__file__).resolve().parents[2] / "roles/serve/files"
UNITS = ("twinserve.service", "twinserve-rank.service")


def settings(name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (FILES / name).read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_reads_it_without_a_word(name: str, tmp_path: Path) -> None:
    for unit in UNITS:
        shutil.copy(FILES / unit, tmp_path)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(tmp_path / name)],
        capture_output=True, text=True, check=False, env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"},
    )  # fmt: skip
    ours = [line for line in done.stderr.splitlines() if "twinserve" in line]
    assert (done.returncode, ours) == (0, [])


def test_o03_a_rank_never_comes_back_alone() -> None:
    rank = settings("twinserve-rank.service")
    assert rank["Restart"] == ["no"]
    assert "WantedBy" not in rank
    assert settings("twinserve.service")["WantedBy"] == ["multi-user.target"]


def test_o09_systemd_leaves_a_rank_the_longest_time_to_stop_that_the_settings_allow() -> None:
    longest = PRODUCT.specs["stop_timeout"].max
    assert longest is not None
    # `docker stop` may take 30 s more, and removing what is left 60 s.
    assert int(settings("twinserve-rank.service")["TimeoutStopSec"][0]) > longest + 90


def test_killed_rank_is_no_success_and_leaves_no_container() -> None:
    rank = settings("twinserve-rank.service")
    assert rank["SuccessExitStatus"] == ["143"]
    assert rank["ExecStopPost"] == ["-/usr/bin/python3 -P -m twinserve.agent unit-clean"]


def test_ranks_are_not_bound_to_the_supervisor() -> None:
    keys = {key for unit in UNITS for key in settings(unit)}
    assert keys.isdisjoint({"BindsTo", "PartOf", "Requires", "Upholds"})
    assert settings("twinserve.service")["RuntimeDirectoryPreserve"] == ["yes"]


@pytest.mark.parametrize(
    ("name", "module"), [("twinserve-rank.sh", "agent"), ("twinserve-control.sh", "control")]
)
def test_wrappers_are_shell_and_start_their_module(name: str, module: str) -> None:
    text = (FILES / name).read_text()
    assert text.startswith("#!/bin/sh\n")
    assert f"python3 -P -m twinserve.{module}" in text
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
