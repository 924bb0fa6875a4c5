"""The simulated RDMA files of one port, as a host reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twinlab.hardware import SPARK, STATION
from twinlab.layout import Host
from twinlab.machine.quirks import PortQuirk
from twinlab.machine.sysfs import PortTree

PORT = SPARK.cabled()[0]


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


def counter(tree_folder: Path, name: str, folder: str = "counters") -> int:
    return int((tree_folder / "ib" / PORT.hca / "ports/1" / folder / name).read_text())


def test_a_bad_cable_lets_the_error_counters_rise_and_a_boot_puts_them_back(tmp_path: Path) -> None:
    tree = PortTree(Host("spark-a", 1, tmp_path, "", ""), PORT)
    tree.update(link())
    names = [("symbol_error", "counters"), ("port_rcv_errors", "counters")]
    names += [("packet_seq_err", "hw_counters"), ("out_of_sequence", "hw_counters")]
    assert [counter(tmp_path, *name) for name in names] == [0, 0, 0, 0]
    tree.wear()
    first = [counter(tmp_path, *name) for name in names]
    tree.wear()
    assert [counter(tmp_path, *name) for name in names] == [2 * count for count in first]
    assert min(first) > 0
    tree.restart()
    tree.update(link())
    assert [counter(tmp_path, *name) for name in names] == [0, 0, 0, 0]


def test_a_link_that_goes_down_is_counted_once_and_carries_no_errors(tmp_path: Path) -> None:
    tree = PortTree(Host("spark-a", 1, tmp_path, "", ""), PORT)
    for carrier in (False, True, False, False):
        tree.update(link(carrier=carrier))
    tree.wear()
    assert counter(tmp_path, "link_downed") == 1
    assert counter(tmp_path, "symbol_error") == 0


def test_a_lost_device_goes_and_comes_back_while_its_network_device_stays(tmp_path: Path) -> None:
    tree = PortTree(Host("spark-a", 1, tmp_path, "", ""), PORT)
    tree.update(link("192.168.177.11"))
    tree.update(link("192.168.177.11"), PortQuirk(is_lost=True))
    assert list((tmp_path / "ib").iterdir()) == []
    assert list((tmp_path / "pci" / PORT.pci / "infiniband").iterdir()) == []
    assert (tmp_path / "netdev" / PORT.netdev / "device").is_symlink()
    tree.update(link("192.168.177.11"), PortQuirk(is_lost=True))
    tree.update(link("192.168.177.11"))
    assert (tmp_path / "ib" / PORT.hca / "ports/1/gids/3").read_text().strip().endswith("c0a8:b10b")
    assert counter(tmp_path, "link_downed") == 0


def test_moved_gids_are_shown_and_put_back(tmp_path: Path) -> None:
    tree = PortTree(Host("spark-a", 1, tmp_path, "", ""), PORT)
    gids = tmp_path / "ib" / PORT.hca / "ports/1/gids"
    tree.update(link("192.168.177.11"), PortQuirk(gid_shift=2))
    assert (gids / "5").read_text().strip().endswith("c0a8:b10b")
    assert (gids / "3").read_text().strip("0:\n") == ""
    tree.update(link("192.168.177.11"))
    assert (gids / "3").read_text().strip().endswith("c0a8:b10b")


def test_a_station_shows_its_own_card(tmp_path: Path) -> None:
    port = STATION.cabled()[1]
    PortTree(Host("spark-a", 1, tmp_path, "", "", STATION), port).update(link())
    assert (tmp_path / "ib/mlx5_1/ports/1/rate").read_text() == "400 Gb/sec (4X NDR)\n"
    assert (tmp_path / "netdev" / port.netdev / "speed").read_text() == "400000\n"
    pci = tmp_path / "pci" / port.pci
    shown = [
        (pci / f"{most}_link_{what}").read_text()
        for most in ("current", "max")
        for what in ("width", "speed")
    ]
    assert shown == ["16\n", "64.0 GT/s PCIe\n"] * 2
