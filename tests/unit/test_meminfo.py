"""Memory figures from the kernel's file."""

from __future__ import annotations

from pathlib import Path

import fake_sysfs as fake
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.meminfo import parse_meminfo, read_memory

TEXT = "MemTotal:  125829120 kB\nMemFree: 1048576 kB\nMemAvailable:  115343360 kB\nHugePages_Total:       0\n"


def test_memory_is_in_gib(tmp_path: Path) -> None:
    fake.put(tmp_path / "proc/meminfo", TEXT)
    memory = read_memory(tmp_path)
    assert memory.as_dict() == {"total_gib": 120.0, "available_gib": 110.0}
    assert memory.free_gib == 1.0


def test_f21_contiguous_memory_is_in_kb_and_may_be_unknown(tmp_path: Path) -> None:
    fake.put(tmp_path / "proc/meminfo", f"{TEXT}CmaTotal:       0 kB\nCmaFree:   940604 kB\n")
    memory = read_memory(tmp_path)
    assert (memory.cma_total_kb, memory.cma_free_kb) == (0, 940604)
    fake.put(tmp_path / "proc/meminfo", TEXT)
    assert read_memory(tmp_path).cma_free_kb is None


def test_counts_and_odd_lines_do_not_disturb() -> None:
    assert parse_meminfo(TEXT + "nonsense\n: 3\n")["HugePages_Total"] == 0


def test_a_kernel_file_without_the_figure_is_an_error(tmp_path: Path) -> None:
    fake.put(tmp_path / "proc/meminfo", "MemTotal: 1 kB")
    with pytest.raises(KeyError, match="MemAvailable"):
        read_memory(tmp_path)
