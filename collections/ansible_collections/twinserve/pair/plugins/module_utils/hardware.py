"""What an RDMA device is made of: driver, firmware, PCIe link, error counters. For people, not for rails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .counters import read_counters
from .kernel_files import link_name, read_attr
from .sysfs import port_folder


@dataclass(frozen=True)
class Pcie:
    """A PCIe link: lanes and GT/s, as negotiated and at best; None where the kernel does not say."""

    width: int | None
    speed_gts: float | None
    max_width: int | None
    max_speed_gts: float | None

    @property
    def throughput_gbps(self) -> float | None:
        """The most that the link carries in one direction, in Gb/s, before the headers of its packets."""
        if self.width is None or self.speed_gts is None:
            return None
        return round(self.width * self.speed_gts * _coding(self.speed_gts), 1)

    def as_dict(self) -> dict[str, Any]:
        """Return the link for a report."""
        return {**asdict(self), "throughput_gbps": self.throughput_gbps}


def _coding(speed_gts: float) -> float:
    """The share of bits for packets: 8 of 10, from 8 GT/s on 128 of 130, from 64 on 236 bytes of 256."""
    if speed_gts <= 5:
        return 8 / 10
    return 128 / 130 if speed_gts < 64 else 236 / 256


def read_hardware(root: Path, hca: str) -> dict[str, Any]:
    """Read what belongs to the device `hca` below `root`. What a driver does not tell is None."""
    base = root / "sys/class/infiniband" / hca
    port, function = port_folder(root, hca) or base / "ports/1", base / "device"
    plain: Mapping[str, str | None] = {
        "driver": link_name(function / "driver"),
        "firmware": read_attr(base / "fw_ver") or None,
        "model": read_attr(base / "hca_type"),
        "board": read_attr(base / "board_id"),
        "node_guid": read_attr(base / "node_guid"),
        "link_layer": read_attr(port / "link_layer"),
        "phys_state": _word(read_attr(port / "phys_state")),
        "rate": read_attr(port / "rate"),
    }
    pcie = read_pcie(function)
    return {**plain, "pcie": pcie and pcie.as_dict(), "counters": read_counters(port)}


def read_pcie(function: Path) -> Pcie | None:
    """Read the link of a PCI function's folder; None when it is none."""
    link = Pcie(
        _lanes(read_attr(function / "current_link_width")),
        _gts(read_attr(function / "current_link_speed")),
        _lanes(read_attr(function / "max_link_width")),
        _gts(read_attr(function / "max_link_speed")),
    )
    return None if link == Pcie(None, None, None, None) else link


def _lanes(text: str | None) -> int | None:
    # 255 and 0 are the kernel's words for a link that it cannot read.
    lanes = int(text) if text and text.isdecimal() else 0
    return lanes if 0 < lanes < 255 else None


def _gts(text: str | None) -> float | None:
    """`32.0 GT/s PCIe`; `Unknown` while the function sleeps."""
    number = (text or "").partition(" ")[0]
    return float(number) if number.replace(".", "", 1).isdecimal() else None


def _word(text: str | None) -> str | None:
    """The kernel's `5: LinkUp` without its number."""
    return text and text.rpartition(":")[2].strip()
