"""Recorded outputs of `ib_write_bw`, in the formats of several versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.bandwidth_parse import (
    ACS,
    GPU_OPTIONS,
    missing_options,
    parse,
)

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "gbits"),
    [
        ("good_rail0", 92.57),
        ("good_rail1", 97.28),
        ("degraded", 13.23),
        ("one_way_slow", 41.06),
        ("station_host_memory", 228.8),
        ("station_gpu_memory", 392.1),
        ("mb_per_second", 97.28),
        ("mib_per_second", 97.28),
    ],
)
def test_the_average_is_read_whatever_the_version_and_the_unit(name: str, gbits: float) -> None:
    found = parse(recorded(name), 0)
    assert (found.gbits, found.problem) == (gbits, "")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("error_connect", "192.168.177.2:18515 does not answer: a firewall on the rail"),
        ("error_connect_old", "192.168.177.2:18515 does not answer: a firewall on the rail"),
        ("error_modify_qp", "the two ends cannot be connected (Failed to modify QP 422 to RTR): their GIDs"),
        ("error_retry", "the other end does not acknowledge what is sent (transport retry exceeded)"),
        ("error_no_device", "ib_write_bw finds no RDMA device: is the package ibverbs-providers installed?"),
        ("error_other_device", "ib_write_bw finds no RDMA device rocep9s0f0"),
        ("error_memlock", "memory cannot be registered for RDMA (Couldn't allocate MR): check free memory"),
        ("error_option", "this ib_write_bw has no option --use_data_direct"),
    ],
)
def test_an_error_is_told_by_its_cause(name: str, problem: str) -> None:
    found = parse(recorded(name), 1)
    assert found.gbits is None
    assert found.problem.startswith(problem)


def test_error_524_names_the_check_and_leaves_the_boot_parameters_to_people() -> None:
    found = parse(recorded("error_524"), 1)
    assert found.problem == ACS
    assert "`rdma_topo check`" in ACS and "IOMMU groups" in ACS and "only you change those" in ACS


def test_a_rate_does_not_count_when_the_run_failed() -> None:
    text = recorded("good_rail0")
    assert parse(text, 1).gbits is None
    assert parse(text + " Completion with error at client\n Failed status 12: wr_id 0\n", 0).gbits is None


@pytest.mark.parametrize(
    ("text", "code", "problem"),
    [
        ("", 1, "ib_write_bw: no output (exit 1)"),
        (" Port number 1 state is Down\n", 1, "ib_write_bw: Port number 1 state is Down (exit 1)"),
        (" #bytes  #iterations  BW peak[Gb/sec]  BW average[Gb/sec]\n", 0, "ib_write_bw: #bytes"),
    ],
)
def test_what_is_not_known_is_quoted(text: str, code: int, problem: str) -> None:
    found = parse(text, code)
    assert found.gbits is None
    assert found.problem.startswith(problem)


def test_the_options_for_gpu_memory_are_looked_for_in_the_help() -> None:
    assert missing_options(recorded("help_cuda")) == []
    assert missing_options(recorded("help_distribution")) == list(GPU_OPTIONS)
