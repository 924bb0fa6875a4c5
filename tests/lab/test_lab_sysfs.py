"""The simulated RDMA files of one port, as a host reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twinlab.hardware import RAILS
from twinlab.layout import Host
from twinlab.machine.sysfs import PortTree

PORT = RAILS[0]


def link(*addresses: str, carrier: bool = True) -> dict[str, Any]:
    flags = ["UP", "LOWER_UP"] if carrier else ["UP", "NO-CARRIER"]
    return {
        "address": "4c:bb:47:00:01:10",
        "flags": flags,
        "addr_info": [{"local": address} for address in addresses],
    }


def test_files_of_a_port_follow_its_link(tmp_path: Path) -> None:
    tree = PortTree(Host("spark-a", 1, tmp_path, "", ""), PORT)
    port = tmp_path / "ib" / PORT.hca / "ports/1"
    tree.update(link("192.168.177.11"))
    assert (port / "state").read_text() == "4: ACTIVE\n"
    assert (port / "gids/3").read_text() == "0000:0000:0000:0000:0000:ffff:c0a8:b10b\n"
    assert (port / "gid_attrs/types/3").read_text() == "RoCE v2\n"
    assert (port / "gid_attrs/ndevs/3").read_text() == f"{PORT.netdev}\n"
    assert len(list((port / "gids").iterdir())) == 255
    tree.update(link(carrier=False))
    assert (port / "state").read_text() == "1: DOWN\n"
    assert (port / "gids/3").read_text() == "0000:0000:0000:0000:0000:0000:0000:0000\n"
    # An empty slot has no type: the kernel answers EINVAL, as the file does to which this link leads.
    assert str((port / "gid_attrs/types/3").readlink()) == "/sys/class/net/lo/speed"
    tree.update(link("192.168.177.11"))
    assert (port / "gid_attrs/types/3").read_text() == "RoCE v2\n"


def test_a_tentative_address_has_no_gid_yet(tmp_path: Path) -> None:
    entry = link()
    entry["addr_info"] = [{"local": "fd00::1", "tentative": True}]
    PortTree(Host("spark-a", 1, tmp_path, "", ""), PORT).update(entry)
    assert (tmp_path / "ib" / PORT.hca / "ports/1/gids/2").read_text().startswith("0000:")


def test_the_network_device_leads_to_the_pci_device_by_a_link(tmp_path: Path) -> None:
    PortTree(Host("spark-a", 1, tmp_path, "", ""), PORT).update(link())
    assert (tmp_path / "netdev" / PORT.netdev / "device").is_symlink()
    pci = tmp_path / "pci" / PORT.pci
    assert (pci / "vendor").read_text() == "0x15b3\n"
    assert str((pci / "infiniband" / PORT.hca).readlink()) == f"/sys/class/infiniband/{PORT.hca}"
    assert (pci / "driver").readlink().name == "mlx5_core"
