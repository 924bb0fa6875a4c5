"""A node's fabric in one report: devices with hardware, ports with makers, device files, programs, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fake_sysfs as fake
import pytest
import yaml
from ansible_collections.twinserve.pair.plugins.module_utils import network_owner, rdma
from ansible_collections.twinserve.pair.plugins.module_utils.hardware import Pcie, read_pcie
from ansible_collections.twinserve.pair.plugins.module_utils.shell import CommandError
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device
from ansible_collections.twinserve.pair.plugins.modules import rdma_info
from module_run import run_module
from probes import link

ADDRESS = "198.51.100.1"
LINK = link(f"{ADDRESS}/24")
MAKER = {
    "service": "networkd",
    "profile": "p",
    "files": [],
    "lasting": True,
    "by_hand": [],
    "link_local": False,
}
# The second port has the same address: then a ping cannot tell the two apart.
NETWORK = {"links": {"enp1s0f1np1": LINK, "eth0": LINK}, "makers": {"enp1s0f1np1": MAKER, "eth0": MAKER}}
COUNTERS = {"symbol_error": 3, "packet_seq_err": 0}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fake.add_port(tmp_path, "enp1s0f1np1")
    fake.add_device(tmp_path, "rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", fake.table_of(ADDRESS))
    fake.add_hardware(tmp_path, "rocep1s0f1", "0000:01:00.1")
    fake.set_counters(tmp_path, "rocep1s0f1", **COUNTERS)
    (tmp_path / "dev/infiniband/by-ibdev").mkdir(parents=True)
    (tmp_path / "dev/infiniband/uverbs0").symlink_to("/dev/null")
    monkeypatch.setattr(network_owner, "read_network", lambda: NETWORK)
    return tmp_path


def test_a_device_with_its_hardware(node: Path) -> None:
    (device,) = rdma.read_rdma(node)["devices"]
    assert {name: value for name, value in device.items() if name != "gids"} == {
        "hca": "rocep1s0f1",
        "netdev": "enp1s0f1np1",
        "pci": "0000:01:00.1",
        "mac": "4c:bb:47:00:01:10",
        "driver": "mlx5_core",
        "firmware": "28.45.4028",
        "model": "MT4129",
        "board": "NVD0000000087",
        "node_guid": "4cbb:4703:0000:0110",
        "link_layer": "Ethernet",
        "state": "ACTIVE",
        "phys_state": "LinkUp",
        "rate": "200 Gb/sec (4X HDR)",
        "operstate": "up",
        "carrier": True,
        "mtu": 9000,
        "speed": 200000,
        "addresses": ["198.51.100.1/24"],
        "shares_subnet": True,
        "counters": COUNTERS,
        "pcie": {
            "width": 4,
            "speed_gts": 32.0,
            "max_width": 16,
            "max_speed_gts": 32.0,
            "throughput_gbps": 126.0,
        },
    }
    assert [(gid["index"], gid["type"], gid["netdev"]) for gid in device["gids"]] == [
        (0, "IB/RoCE v1", "enp1s0f1np1"),
        (1, "RoCE v2", "enp1s0f1np1"),
        (2, "IB/RoCE v1", "enp1s0f1np1"),
        (3, "RoCE v2", "enp1s0f1np1"),
    ]
    assert Device.from_json(device).up


def test_a_software_device_has_neither_pci_nor_a_speed(tmp_path: Path) -> None:
    fake.add_port(tmp_path, "enp1s0f0np0", speed="-1")
    fake.add_software_device(tmp_path, "rocep1s0f0", "enp1s0f0np0", ADDRESS)
    fake.set_counters(tmp_path, "rocep1s0f0", out_of_seq_request=2, completer_retry_err=0)
    (device,) = rdma.read_devices(tmp_path, {"enp1s0f0np0": [f"{ADDRESS}/24"]})
    known = ("netdev", "pci", "driver", "firmware", "model", "pcie", "speed", "phys_state")
    assert [device[name] for name in known] == ["enp1s0f0np0", "", None, None, None, None, None, "LinkUp"]
    assert device["counters"] == {"out_of_seq_request": 2, "completer_retry_err": 0}
    assert [gid["index"] for gid in device["gids"]] == [0, 1]
    assert Device.from_json(device).up


def test_ports_name_their_device_and_who_configured_them(node: Path) -> None:
    assert rdma.read_rdma(node)["ports"] == [
        {"netdev": "enp1s0f1np1", "hca": "rocep1s0f1", **LINK, **MAKER},
        {"netdev": "eth0", "hca": None, **LINK, **MAKER},
    ]


def test_device_files_are_listed_without_folders_and_may_be_missing(node: Path) -> None:
    assert rdma.read_rdma(node)["char_devices"] == ["/dev/infiniband/uverbs0"]
    assert rdma.device_files(node / "elsewhere") == []


def test_what_cannot_be_read_hides_nothing_else(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent() -> dict[str, Any]:
        raise CommandError("nmcli did not answer within 20 s")

    monkeypatch.setattr(network_owner, "read_network", silent)
    monkeypatch.setattr(rdma, "read_links", lambda: {"enp1s0f1np1": LINK})
    fake.add_device(node, "rocep1s0f0", "enp1s0f0np0", "0000:01:00.0", {})
    state = node / "sys/class/infiniband/rocep1s0f0/ports/1/link_layer"
    state.unlink()
    state.mkdir()
    found = rdma.read_rdma(node)
    assert [device["hca"] for device in found["devices"]] == ["rocep1s0f1"]
    assert found["devices"][0]["addresses"] == [f"{ADDRESS}/24"]
    (port,) = found["ports"]
    assert (port["addresses"], port["service"], port["lasting"]) == ([f"{ADDRESS}/24"], None, None)
    assert set(port) == {"netdev", "hca", *LINK, *MAKER}
    assert found["char_devices"] == ["/dev/infiniband/uverbs0"]
    assert found["errors"]["makers"] == "nmcli did not answer within 20 s"
    assert "Is a directory" in found["errors"]["devices.rocep1s0f0"]
    assert len(found["errors"]) == 2


@pytest.mark.parametrize(
    ("width", "speed", "gbps"),
    [(4, 32.0, 126.0), (16, 32.0, 504.1), (8, 5.0, 32.0), (16, 64.0, 944.0), (4, None, None)],
)
def test_throughput_of_a_pcie_link(width: int, speed: float | None, gbps: float | None) -> None:
    assert Pcie(width, speed, None, None).throughput_gbps == gbps


@pytest.mark.parametrize(
    ("width", "speed", "read"),
    [
        ("4", "32.0 GT/s PCIe", (4, 32.0)),
        ("16", "8 GT/s", (16, 8.0)),
        ("255", "16.0 GT/s PCIe", (None, 16.0)),
        ("2", "Unknown", (2, None)),
    ],
)
def test_what_the_kernel_says_of_a_pcie_link(
    tmp_path: Path, width: str, speed: str, read: tuple[int | None, float | None]
) -> None:
    assert read_pcie(tmp_path) is None
    fake.put(tmp_path / "current_link_width", width)
    fake.put(tmp_path / "current_link_speed", speed)
    link = read_pcie(tmp_path)
    assert link and (link.width, link.speed_gts) == read


@pytest.mark.parametrize("check", [False, True])
def test_the_module_reports_and_changes_nothing(
    node: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, check: bool
) -> None:
    monkeypatch.setattr(rdma_info, "read_rdma", lambda: rdma.read_rdma(node))
    answer = run_module(rdma_info, capsys, check=check)
    assert (answer["changed"], answer["failed"]) == (False, False)
    assert set(answer["rdma"]) == {"devices", "ports", "lost", "char_devices", "tools", "errors"}
    assert json.loads(json.dumps(answer["rdma"]["errors"])) == {}


def test_the_documentation_names_exactly_what_is_returned(node: Path) -> None:
    documented = yaml.safe_load(rdma_info.RETURN)["rdma"]
    contains, found = documented["contains"], rdma.read_rdma(node)
    assert set(contains) == set(found)
    device, port = found["devices"][0], found["ports"][0]
    parts = {"devices": device, "ports": port}
    for name, part in parts.items():
        assert set(contains[name]["contains"]) == set(part)
        assert set(documented["sample"][name][0]) == set(part)
    inner = contains["devices"]["contains"]
    assert set(inner["gids"]["contains"]) == set(device["gids"][0])
    assert set(inner["pcie"]["contains"]) == set(device["pcie"])
