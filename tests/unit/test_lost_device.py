"""F-23: an RDMA device that is gone while its port is there, and what the kernel log says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake_sysfs as fake
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import lost_device
from fake_programs import Programs

GONE = "RoCE device of enp1s0f1np1 is gone (PCIe error in the kernel log): power-cycle the node"
HEALTH = "mlx5_core 0000:01:00.1: poll_health:967:(pid 0): Fatal error 1 detected"
AER = "pcieport 0000:00:00.0: AER: Uncorrectable (Fatal) error message received from 0000:01:00.1"
BUS = "mlx5_core 0000:01:00.1: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer"
HARMLESS = (
    "mlx5_core 0000:01:00.1 enp1s0f1np1: Link up\n"
    "pcieport 0000:00:00.0: AER: Correctable error message received from 0000:01:00.1\n"
    "mlx5_core 0000:01:00.1: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer\n"
)


def node_without_a_device(root: Path) -> Path:
    """Two ports of an mlx5 card, one with its RDMA device, and an office port."""
    for netdev, function in (("enp1s0f0np0", "0000:01:00.0"), ("enp1s0f1np1", "0000:01:00.1")):
        fake.add_port(root, netdev)
        (root / "sys/class/net" / netdev / "device").symlink_to(root / "sys" / function)
        fake.put(root / "sys" / function / "vendor", "0x15b3")
        (root / "sys" / function / "driver").symlink_to("../bus/pci/drivers/mlx5_core")
    fake.add_port(root, "enP7s7")
    fake.put(root / "sys/0000:01:00.0/infiniband/rocep1s0f0/node_type", "1: CA")
    fake.put(root / "sys/class/infiniband/rocep1s0f0/node_type", "1: CA")
    return root


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (f"{HARMLESS}{HEALTH}\n{HARMLESS}", HEALTH),
        (f"{AER}\n{HARMLESS}", AER),
        (f"{AER}\n{BUS}\n", BUS),
        (HARMLESS, None),
        ("", None),
    ],
)
def test_f23_the_kernel_log_tells_a_fatal_error_from_others(log: str, line: str | None) -> None:
    assert lost_device.find_error(log) == line


def test_f23_the_port_whose_device_is_gone_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_device, "read_error", lambda: AER)
    node_without_a_device(tmp_path)
    assert lost_device.read_lost(tmp_path) == [{"netdev": "enp1s0f1np1", "pcie_error": AER}]


def test_the_kernel_log_is_not_asked_while_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = Programs(tmp_path / "programs", monkeypatch, "journalctl")
    node_without_a_device(tmp_path)
    fake.put(tmp_path / "sys/0000:01:00.1/infiniband/rocep1s0f1/node_type", "1: CA")
    assert lost_device.read_lost(tmp_path) == []
    assert programs.calls == []


def test_without_any_device_the_driver_is_not_loaded_and_nothing_is_lost(tmp_path: Path) -> None:
    node_without_a_device(tmp_path)
    (tmp_path / "sys/class/infiniband/rocep1s0f0/node_type").unlink()
    (tmp_path / "sys/class/infiniband/rocep1s0f0").rmdir()
    assert lost_device.read_lost(tmp_path) == []


@pytest.mark.parametrize(("log", "code", "line"), [(f"{AER}\n", None, AER), ("No journal files\n", 1, None)])
def test_this_boots_kernel_log_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, code: int | None, line: str | None
) -> None:
    programs = Programs(tmp_path, monkeypatch, "journalctl")
    programs.answer("journalctl_-k_-b", log, code)
    assert lost_device.read_error() == line
    assert programs.calls == ["journalctl -k -b -q -o cat --no-pager -n 5000"]


@pytest.mark.parametrize(
    ("lost", "faults"),
    [
        ([{"netdev": "enp1s0f1np1", "pcie_error": AER}], [GONE]),
        ([{"netdev": "enp1s0f1np1", "pcie_error": None}], []),
        ([], []),
        (None, []),
    ],
)
def test_f23_a_node_is_refused_only_when_the_kernel_log_confirms_it(lost: Any, faults: list[str]) -> None:
    assert lost_device.faults({"lost_devices": lost}) == faults
