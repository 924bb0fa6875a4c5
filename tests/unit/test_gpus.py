"""What nvidia-smi says of a GB10, and of a driver that is out of step."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.gpus import (
    parse_gpus,
    parse_memory,
    parse_processes,
    read_gpus,
)
from ansible_collections.twinserve.pair.plugins.module_utils.shell import CommandError
from fake_programs import Programs


def test_names_uuids_and_the_driver() -> None:
    text = "NVIDIA RTX PRO 6000, GPU-aaaa, 580.95\nNVIDIA GB300, GPU-bbbb, 580.95\n"
    assert parse_gpus(text) == (["NVIDIA RTX PRO 6000", "NVIDIA GB300"], ["GPU-aaaa", "GPU-bbbb"], "580.95")
    assert parse_gpus("No devices were found\n") == ([], [], "")


def test_memory_of_its_own_has_a_size() -> None:
    text = (
        "NVIDIA GB10, GPU-1, 580.95, [N/A], [N/A]\nNVIDIA GB300, GPU-2, 595.84, 256703, 1024\nX, GPU-3, 1\n"
    )
    bare, own, older = parse_memory(text)
    assert (bare, older) == (None, None)
    assert own is not None
    assert (round(own[0], 2), own[1]) == (250.69, 1.0)
    assert parse_gpus(text)[1] == ["GPU-1", "GPU-2", "GPU-3"]


@pytest.mark.parametrize(
    ("text", "processes"),
    [
        ("4711, 2048\n", {"4711": 2.0}),
        ("4711, [N/A]\n12, 512\n", {"4711": None, "12": 0.5}),
        ("", {}),
        ("No running processes found\n", {}),
    ],
)
def test_processes_with_their_gib_if_the_driver_knows(text: str, processes: dict[str, float | None]) -> None:
    assert parse_processes(text) == processes


def test_c10_the_drivers_own_words_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95\n"
    Programs(tmp_path, monkeypatch, "nvidia-smi").answer("nvidia-smi", said, 18)
    with pytest.raises(CommandError, match="Driver/library version mismatch NVML library version: 580.95"):
        read_gpus()
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(CommandError, match="^nvidia-smi is not installed"):
        read_gpus()


def test_one_look_asks_for_gpus_and_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(tmp_path, monkeypatch, "nvidia-smi")
    query = "nvidia-smi_--query-gpu=name,uuid,driver_version,memory.total,memory.used"
    programs.answer(query, "NVIDIA GB10, GPU-1, 580.95, [N/A], [N/A]\n")
    programs.answer("nvidia-smi_--query-compute-apps=pid,used_memory", "7, 1024\n")
    found = read_gpus()
    assert (found.names, found.uuids, found.driver, found.processes) == (
        ["NVIDIA GB10"],
        ["GPU-1"],
        "580.95",
        {"7": 1.0},
    )
