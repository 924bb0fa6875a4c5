"""/proc/meminfo of a host, and whose process is the engine's."""

from __future__ import annotations

from pathlib import Path

import pytest
from twinlab.machine import meminfo
from twinlab.machine.simulator import is_engine

REAL = (
    "MemTotal:       24689640 kB\nMemFree:          123456 kB\nMemAvailable:   20000000 kB\nBuffers:  1 kB\n"
)


def figures(text: str) -> dict[str, int]:
    return {line.split()[0].rstrip(":"): int(line.split()[1]) for line in text.splitlines()}


def test_total_is_that_of_a_spark_and_available_what_was_set() -> None:
    shown = figures(meminfo.render(REAL, 20.5))
    assert shown["MemAvailable"] == 20.5 * 1024 * 1024
    assert round(shown["MemTotal"] / 1024 / 1024, 1) == 119.7
    assert shown["MemFree"] < shown["MemAvailable"]
    assert shown["Buffers"] == 1


def test_the_length_is_the_same_for_all_figures() -> None:
    assert len(meminfo.render(REAL, 0.1)) == len(meminfo.render(REAL, 119.7))


def test_writing_keeps_the_file_itself(tmp_path: Path) -> None:
    file = tmp_path / "meminfo"
    meminfo.write(file, "long text\n")
    inode = file.stat().st_ino
    meminfo.write(file, "short\n")
    assert (file.read_text(), file.stat().st_ino) == ("short\n", inode)


@pytest.mark.parametrize(
    ("setting", "engine", "left"), [(115.0, 0.0, 115.0), (115.0, 81.2, 33.8), (50.0, 81.2, 0.1)]
)
def test_available(setting: float, engine: float, left: float) -> None:
    assert meminfo.available(setting, engine) == pytest.approx(left)


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        ("tensorfold serve /model --tp 2", True),
        ("/usr/bin/python3 /usr/local/bin/tensorfold serve /model", True),
        ("python3 -m tensorfold serve /model", True),
        ("docker run --rm image tensorfold serve /model", False),
        ("/usr/bin/docker run tensorfold serve", False),
        ("/sbin/docker-init -- tensorfold serve /model", False),
        ("sudo docker run x tensorfold serve", False),
        ("tensorfold info", False),
        ("sshd: nvidia", False),
    ],
)
def test_only_the_engine_itself_holds_memory(command: str, engine: bool) -> None:
    assert is_engine([word.encode() for word in command.split(" ")]) is engine
