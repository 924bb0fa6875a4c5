"""The hosts' ib_write_bw: rates by machine and switch, and perftest's own words when it cannot."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from twinlab.layout import PACKAGE, Host
from twinlab.power import set_bandwidth

RECORDED = Path(__file__).resolve().parents[1] / "unit/recorded"


def _load() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader(
        "ib_write_bw", str(PACKAGE / "hostfiles/usr/bin/ib_write_bw")
    )
    spec = importlib.util.spec_from_loader("ib_write_bw", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


tool = _load()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host whose tool finds its devices and its switch below a folder."""
    one = Host("spark-a", 1, tmp_path, "", "")
    one.engine.mkdir()
    monkeypatch.setattr(tool, "_SYS", tmp_path / "class")
    monkeypatch.setattr(tool, "_SWITCH", one.engine / "bandwidth")
    for netdev, speed in (("enp1s0f0np0", "200000"), ("enP1p3s0f0np0", "400000")):
        folder = tmp_path / "class/net" / netdev
        folder.mkdir(parents=True)
        (folder / "speed").write_text(speed)
    (tmp_path / "class/infiniband").mkdir()
    return one


def test_twins_send_less_together_than_a_cable_has(host: Host) -> None:
    assert [tool.rate("enp1s0f0np0", None, active) for active in (1, 2)] == [92.6, 92.6]
    set_bandwidth(host, 111.7)
    assert [tool.rate("enp1s0f0np0", None, active) for active in (1, 2)] == [111.7, 95.0]
    set_bandwidth(host, None)
    assert tool.rate("enp1s0f0np0", None, 1) == 92.6


def test_a_station_sends_more_out_of_its_gpu(host: Host) -> None:
    assert [tool.rate("enP1p3s0f0np0", gpu, 2) for gpu in (None, "0")] == [228.8, 392.1]


def test_the_table_is_as_recorded() -> None:
    options = SimpleNamespace(gbits=True, size=65536, duration=5)
    lines = (RECORDED / "good_rail0.txt").read_text().splitlines()
    made = tool.table(options, 92.57).splitlines()
    assert [line.split() for line in made] == [line.split() for line in lines[-3:]]


@pytest.mark.parametrize(
    ("words", "recorded"),
    [
        (["--use_data_direct", "-d", "rocep1s0f0"], "error_option"),
        (["-d", "rocep9s0f0"], "error_other_device"),
        ([], "error_no_device"),
    ],
)
def test_it_fails_with_the_recorded_words(
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    recorded: str,
) -> None:
    if recorded == "error_other_device":
        (host.folder / "class/infiniband/rocep1s0f0").mkdir()
    monkeypatch.setattr(sys, "argv", ["ib_write_bw", *words])
    assert tool.main() == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.strip() for line in said if line.strip()] == [
        line.strip() for line in (RECORDED / f"{recorded}.txt").read_text().splitlines() if line.strip()
    ]
