"""/proc/meminfo of a host, and what an engine holds of it."""

from __future__ import annotations

import fcntl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from twinlab.layout import Host
from twinlab.machine import meminfo
from twinlab.machine.simulator import engine_gib, update_memory
from twinlab.power import set_memory

REAL = (
    "MemTotal:       24689640 kB\nMemFree:          123456 kB\nMemAvailable:   20000000 kB\nBuffers:  1 kB\n"
)


def figures(text: str) -> dict[str, int]:
    return {line.split()[0].rstrip(":"): int(line.split()[1]) for line in text.splitlines()}


def test_total_is_what_the_machine_has_and_available_what_was_set() -> None:
    shown = figures(meminfo.render(REAL, 119.7, 20.5))
    assert shown["MemAvailable"] == 20.5 * 1024 * 1024
    assert round(shown["MemTotal"] / 1024 / 1024, 1) == 119.7
    assert shown["MemFree"] < shown["MemAvailable"]
    assert shown["Buffers"] == 1


def test_what_files_have_is_available_and_not_free() -> None:
    shown = figures(meminfo.render(REAL, 119.7, 27, 100))
    assert shown["MemAvailable"] == 27 * 1024 * 1024
    assert shown["MemFree"] == round(0.1 * 1024 * 1024)


def test_the_length_is_the_same_for_all_figures() -> None:
    lengths = {len(meminfo.render(REAL, 119.7, *figures)) for figures in ((0.1,), (119.7,), (115, 114.9))}
    assert len(lengths) == 1


def test_writing_keeps_the_file_itself(tmp_path: Path) -> None:
    file = tmp_path / "meminfo"
    meminfo.rewrite(file, lambda: "long text\n")
    inode = file.stat().st_ino
    meminfo.rewrite(file, lambda: "short\n")
    assert (file.read_text(), file.stat().st_ino) == ("short\n", inode)


@pytest.mark.parametrize(
    ("setting", "engine", "left"), [(115.0, 0.0, 115.0), (115.0, 81.2, 33.8), (50.0, 81.2, 0.1)]
)
def test_available(setting: float, engine: float, left: float) -> None:
    assert meminfo.available(setting, engine) == pytest.approx(left)


def test_an_engines_figure_counts_only_while_it_lives(tmp_path: Path) -> None:
    host = Host(name="x-a", number=1, folder=tmp_path, cgroup="", netns="")
    host.engine.mkdir()
    assert engine_gib(host) == 0
    figure = host.engine / "gpu.json"
    figure.write_text('{"gib": 88.09, "rank": 0}')
    assert engine_gib(host) == 0
    with figure.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert engine_gib(host) == 88.09
    assert engine_gib(host) == 0


def test_the_simulator_looks_while_a_person_sets_the_memory(tmp_path: Path) -> None:
    """It died of an empty setting now and then, and could write down an old one after the new."""
    host = Host(name="x-a", number=1, folder=tmp_path, cgroup="", netns="")
    done, real = threading.Event(), Path("/proc/meminfo").read_text()
    set_memory(host, 20)

    def look() -> None:
        while not done.is_set():
            update_memory(host, real)

    with ThreadPoolExecutor() as pool:
        simulator = pool.submit(look)
        try:
            for gib in (115, 20) * 300:
                set_memory(host, gib)
                assert figures(host.meminfo.read_text())["MemAvailable"] == gib * 1024 * 1024
        finally:
            done.set()
        simulator.result()
