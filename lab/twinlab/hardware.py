"""The ports of a simulated DGX Spark, with the names that Linux gives them there."""

from __future__ import annotations

from dataclasses import dataclass

MANAGEMENT = "enP7s7"
MEMORY_TOTAL_GIB = 119.7
MEMORY_AVAILABLE_GIB = 115.0
DISK_GIB = 1024


@dataclass(frozen=True)
class Port:
    """One RDMA port: its network device, RDMA device and place on the PCI bus."""

    netdev: str
    hca: str
    pci: str
    rail: int | None  # None: the second QSFP port, into which no cable goes
    mac_index: int


# One cable is seen as two devices, the "twins", each on its own PCI domain.
RAILS = (
    Port("enp1s0f0np0", "rocep1s0f0", "0000:01:00.0", 1, 0x10),
    Port("enP2p1s0f0np0", "roceP2p1s0f0", "0002:01:00.0", 2, 0x11),
)
DARK = (
    Port("enp1s0f1np1", "rocep1s0f1", "0000:01:00.1", None, 0x20),
    Port("enP2p1s0f1np1", "roceP2p1s0f1", "0002:01:00.1", None, 0x21),
)
PORTS = RAILS + DARK


def mac(host_number: int, index: int) -> str:
    """The hardware address of a port, under a prefix that belongs to NVIDIA."""
    return f"4c:bb:47:00:{host_number:02x}:{index:02x}"
