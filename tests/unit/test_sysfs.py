"""RoCE devices of a node, from a folder that looks like its sysfs."""

from __future__ import annotations

from pathlib import Path

import fake_sysfs as fake
from ansible_collections.twinserve.pair.plugins.module_utils.netdevs import parse_links, read_netdev
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device, read_devices

ADDRESSES = {"enp1s0f1np1": ["198.51.100.1/24"], "enP2p1s0f1np1": ["203.0.113.1/24"]}


def spark(root: Path) -> None:
    fake.add_port(root, "enP7s7", speed="10000")
    for netdev in ("enp1s0f1np1", "enP2p1s0f1np1"):
        fake.add_port(root, netdev)
    fake.add_port(root, "enp1s0f0np0", operstate="down", speed=None)
    fake.add_device(root, "roceP2p1s0f1", "enP2p1s0f1np1", "0002:01:00.1", fake.table_of("203.0.113.1", 5))
    fake.add_device(root, "rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", fake.table_of("198.51.100.1"))
    fake.add_device(
        root, "rocep1s0f0", "enp1s0f0np0", "0000:01:00.0", {0: (fake.LINK_LOCAL, fake.V1)}, state="1: DOWN"
    )


def test_devices_come_in_pci_order_with_their_ports(tmp_path: Path) -> None:
    spark(tmp_path)
    found = read_devices(tmp_path, ADDRESSES)
    assert [(device.hca, device.netdev, device.pci, device.up) for device in found] == [
        ("rocep1s0f0", "enp1s0f0np0", "0000:01:00.0", False),
        ("rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", True),
        ("roceP2p1s0f1", "enP2p1s0f1np1", "0002:01:00.1", True),
    ]
    assert found[0].state == "DOWN"
    assert found[0].speed is None
    assert found[1].addresses == ("198.51.100.1/24",)
    assert found[1].mtu == 9000


def test_device_survives_its_own_report(tmp_path: Path) -> None:
    spark(tmp_path)
    found = read_devices(tmp_path, ADDRESSES)
    assert [Device.from_json(device.as_dict()) for device in found] == found
    assert found[1].as_dict()["gids"][-1] == {
        "index": 3,
        "gid": "0000:0000:0000:0000:0000:ffff:c633:6401",
        "type": "RoCE v2",
        "netdev": "enp1s0f1np1",
    }


def test_port_is_found_by_the_older_links_when_the_table_has_no_owner(tmp_path: Path) -> None:
    fake.add_port(tmp_path, "enp1s0f1np1")
    fake.add_device(
        tmp_path, "mlx5_0", "enp1s0f1np1", "0000:01:00.1", fake.table_of("198.51.100.1"), ndevs=False
    )
    assert read_devices(tmp_path, {}) == []
    (tmp_path / "sys/class/net/enp1s0f1np1/device/infiniband/mlx5_0").mkdir(parents=True)
    assert [device.netdev for device in read_devices(tmp_path, {})] == ["enp1s0f1np1"]


def test_infiniband_link_layer_is_no_rail(tmp_path: Path) -> None:
    spark(tmp_path)
    fake.put(tmp_path / "sys/class/infiniband/rocep1s0f1/ports/1/link_layer", "InfiniBand")
    assert "rocep1s0f1" not in [device.hca for device in read_devices(tmp_path, ADDRESSES)]


def test_node_without_rdma_has_no_devices(tmp_path: Path) -> None:
    assert read_devices(tmp_path, {}) == []
    assert read_netdev("eth0", tmp_path) is None


def test_addresses_are_ipv4_with_prefix_and_without_tentative_ones() -> None:
    text = """[{}, {"ifname": "lo", "addr_info": [{"family": "inet6", "local": "::1", "prefixlen": 128}]},
      {"ifname": "enp1s0f1np1", "addr_info": [
        {"family": "inet", "local": "198.51.100.1", "prefixlen": 24},
        {"family": "inet", "local": "198.51.100.9", "prefixlen": 24, "tentative": true}]}]"""
    found = {port: link["addresses"] for port, link in parse_links(text).items()}
    assert found == {"lo": [], "enp1s0f1np1": ["198.51.100.1/24"]}
    assert parse_links("") == {}
