"""What a host sees as /sys/class/infiniband, as its ConnectX PCI devices, and on top of its netdevs.

Written by the controller, read-only in the host.  Every file is renamed into place: a reader never sees half.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ..files import write_whole
from ..hardware import Card, Port
from ..layout import Host
from . import gids
from .counters import Counters
from .quirks import PortQuirk

# What the kernel answers for the type and device of an empty slot is an error, EINVAL; so does this file.
_EINVAL = "/sys/class/net/lo/speed"
_FACTORY = PortQuirk()


def _put(file: Path, text: str) -> None:
    if file.is_symlink() or not file.exists() or file.read_text() != text:
        write_whole(file, text)


def _link(file: Path, target: str) -> None:
    if not (file.is_symlink() and str(file.readlink()) == target):
        new = file.with_name(f".{file.name}.new")
        new.unlink(missing_ok=True)
        new.symlink_to(target)
        new.rename(file)


def _values(folder: Path, values: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        _put(folder / name, value + "\n")


def _pci_values(port: Port, card: Card) -> dict[str, str]:
    return {
        "vendor": "0x15b3",
        "device": card.pci_device,
        "numa_node": "-1",
        "current_link_width": card.pcie_width,
        "current_link_speed": card.pcie_speed,
        "max_link_width": card.pcie_width,
        "max_link_speed": card.pcie_speed,
        "uevent": f"DRIVER=mlx5_core\nPCI_SLOT_NAME={port.pci}",
    }


class PortTree:
    """The files of one RDMA port of a host, kept as its network device is."""

    def __init__(self, host: Host, port: Port) -> None:
        self._host = host
        self._port = port
        self._hca = host.folder / "ib" / port.hca
        self._pci = host.folder / "pci" / port.pci
        self._table: dict[int, gids.Gid] = {}
        self._drawn: dict[int, gids.Gid] | None = None
        self._counters = Counters()
        self._counted: dict[str, dict[str, int]] = {}

    def update(self, link: dict[str, Any], quirk: PortQuirk = _FACTORY) -> None:
        """Write what has changed, given the port's entry of `ip -j addr` and what is odd about it."""
        carrier = "LOWER_UP" in link["flags"]
        self._counters.see(carrier)
        if quirk.is_lost:
            self._remove()
            return
        if self._drawn is None:
            self._draw_constant(link["address"])
        self._draw_state(carrier)
        self._draw_counters()
        settled = [entry["local"] for entry in link["addr_info"] if not entry.get("tentative")]
        self._table = gids.update(self._table, link["address"], settled)
        self._draw_gids(gids.disturbed(self._table, quirk.gid_shift, quirk.v1_only))

    def wear(self) -> None:
        """Let a bad cable leave its marks."""
        self._counters.wear()
        if self._drawn is not None:
            self._draw_counters()

    def restart(self) -> None:
        """The host boots: its counters begin at zero."""
        self._counters = Counters()

    def _remove(self) -> None:
        """Take the RDMA device away; the network device stays."""
        (self._pci / "infiniband" / self._port.hca).unlink(missing_ok=True)
        if self._hca.exists():
            aside = self._host.folder / f".lost-{self._port.hca}"  # away at once, then removed
            self._hca.rename(aside)
            shutil.rmtree(aside)
        self._drawn = None
        self._counted, self._table = {}, {}

    def _draw_constant(self, mac: str) -> None:
        port, hca, card = self._port, self._hca, self._host.hardware.card
        part = mac.split(":")
        guid = f"{part[0]}{part[1]}:{part[2]}03:00{part[3]}:{part[4]}{part[5]}"
        _values(
            hca,
            {
                "node_type": "1: CA",
                "fw_ver": card.firmware,
                "hca_type": card.hca_type,
                "node_guid": guid,
                "board_id": card.board,
                "sys_image_guid": guid,
                "node_desc": f"{self._host.name} {port.hca}",
            },
        )
        _values(
            hca / "ports/1",
            {"link_layer": "Ethernet", "lid": "0x0", "sm_lid": "0x0", "cap_mask": "0x00010000"},
        )
        _link(hca / "device", f"/sys/class/lab/{port.pci}")
        pci = self._pci
        _values(pci, _pci_values(port, card))
        for name, entry, target in (
            ("infiniband", port.hca, f"/sys/class/infiniband/{port.hca}"),
            ("net", port.netdev, f"/sys/class/net/{port.netdev}"),
        ):
            (pci / name).mkdir(exist_ok=True)
            _link(pci / name / entry, target)
        (pci.parent / "mlx5_core").mkdir(exist_ok=True)
        _link(pci.parent / "mlx5_core" / "module", "/sys/class/lab/mlx5_core")
        _link(pci / "driver", "../mlx5_core")
        netdev = self._host.folder / "netdev" / port.netdev
        _values(netdev, {"speed": str(card.speed)})
        # A link, as on hardware: with a folder here Ansible loses all of its network facts.
        _link(netdev / "device", f"../../../../class/lab/{port.pci}")

    def _draw_state(self, carrier: bool) -> None:
        _values(
            self._hca / "ports/1",
            {
                "state": "4: ACTIVE" if carrier else "1: DOWN",
                "phys_state": "5: LinkUp" if carrier else "3: Disabled",
                "rate": self._host.hardware.card.rate if carrier else "40 Gb/sec (4X QDR)",
            },
        )

    def _draw_counters(self) -> None:
        port = self._hca / "ports/1"
        for folder, values in self._counters.files().items():
            if self._counted.get(folder) != values:
                _values(port / folder, {name: str(value) for name, value in values.items()})
                self._counted[folder] = values

    def _draw_gids(self, table: dict[int, gids.Gid]) -> None:
        port = self._hca / "ports/1"
        types, ndevs, values = port / "gid_attrs/types", port / "gid_attrs/ndevs", port / "gids"
        for folder in (types, ndevs, values):
            folder.mkdir(parents=True, exist_ok=True)
        for slot in range(gids.SLOTS):
            entry = table.get(slot)
            if self._drawn is not None and self._drawn.get(slot) == entry:
                continue
            name = str(slot)
            _put(values / name, (entry.value if entry else gids.EMPTY) + "\n")
            if entry:
                _put(types / name, entry.type + "\n")
                _put(ndevs / name, self._port.netdev + "\n")
            else:
                _link(types / name, _EINVAL)
                _link(ndevs / name, _EINVAL)
        self._drawn = table
