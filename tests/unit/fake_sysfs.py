"""Build a node's sysfs below a folder: RDMA devices, their GID tables, their ports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ansible_collections.twinserve.pair.plugins.module_utils.gids import mapped

ZERO = ":".join(["0000"] * 8)
LINK_LOCAL = "fe80:0000:0000:0000:4ebb:47ff:fe00:0110"
V1, V2 = "IB/RoCE v1", "RoCE v2"
# Reading this kernel file fails with EINVAL, as an empty slot's type does on hardware.
EINVAL_FILE = Path("/sys/class/net/lo/speed")

Table = Mapping[int, tuple[str, str]]


def put(path: Path, text: str) -> None:
    """Write one attribute, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def table_of(address: str, index: int = 3) -> dict[int, tuple[str, str]]:
    """A table as mlx5 fills it: link-local twice, then the address as v1 and, at `index`, as v2."""
    return {
        0: (LINK_LOCAL, V1),
        1: (LINK_LOCAL, V2),
        index - 1: (mapped(address), V1),
        index: (mapped(address), V2),
    }


def add_port(
    root: Path,
    netdev: str,
    *,
    operstate: str = "up",
    mtu: int = 9000,
    speed: str | None = "200000",
    mac: str = "4c:bb:47:00:01:10",
) -> None:
    """Add a network port; without a speed its attribute cannot be read."""
    base = root / "sys/class/net" / netdev
    put(base / "address", mac)
    put(base / "operstate", operstate)
    put(base / "carrier", "1" if operstate == "up" else "0")
    put(base / "mtu", str(mtu))
    if speed is None:
        (base / "speed").symlink_to(EINVAL_FILE)
    else:
        put(base / "speed", speed)


def add_device(
    root: Path,
    hca: str,
    netdev: str,
    pci: str,
    table: Table,
    *,
    slots: int = 16,
    ndevs: bool = True,
    state: str = "4: ACTIVE",
) -> None:
    """Add an RDMA device; `ndevs=False` leaves out the table's own mapping to the port."""
    base = root / "sys/class/infiniband" / hca
    port = base / "ports/1"
    put(port / "state", state)
    put(port / "link_layer", "Ethernet")
    (base / "device").symlink_to(f"../../../{pci}")
    for part in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
        (port / part).mkdir(parents=True, exist_ok=True)
    for index in range(slots):
        gid, kind = table.get(index, (ZERO, ""))
        put(port / f"gids/{index}", gid)
        for part, value in (("types", kind), ("ndevs", netdev if kind and ndevs else "")):
            if value:
                put(port / f"gid_attrs/{part}/{index}", value)
            else:
                (port / f"gid_attrs/{part}/{index}").symlink_to(EINVAL_FILE)


def set_counters(root: Path, hca: str, **values: int) -> None:
    """Give a device's port these counters; RoCE's own are in a folder beside those of the link."""
    link = ("symbol", "link_", "port_", "local_link", "excessive")
    for name, value in values.items():
        folder = "counters" if name.startswith(link) else "hw_counters"
        put(root / "sys/class/infiniband" / hca / "ports/1" / folder / name, str(value))


def add_hardware(root: Path, hca: str, pci: str, *, width: int = 4, speed: str = "32.0 GT/s PCIe") -> None:
    """Say what an mlx5 device is, and how its PCI function is linked."""
    base, function = root / "sys/class/infiniband" / hca, root / "sys" / pci
    for name, text in (("fw_ver", "28.45.4028"), ("hca_type", "MT4129"), ("board_id", "NVD0000000087")):
        put(base / name, text)
    put(base / "node_guid", "4cbb:4703:0000:0110")
    put(base / "ports/1/phys_state", "5: LinkUp")
    put(base / "ports/1/rate", "200 Gb/sec (4X HDR)")
    for name, text in (("width", str(width)), ("speed", speed)):
        put(function / f"current_link_{name}", text)
    put(function / "max_link_width", "16")
    put(function / "max_link_speed", "32.0 GT/s PCIe")
    (function / "driver").symlink_to("../bus/pci/drivers/mlx5_core")


def add_software_device(root: Path, hca: str, netdev: str, address: str) -> None:
    """Add a device of rdma_rxe: no PCI function, a file that names the port instead; v2 entries only."""
    add_device(root, hca, netdev, "", {0: (LINK_LOCAL, V2), 1: (mapped(address), V2)}, ndevs=False)
    base = root / "sys/class/infiniband" / hca
    (base / "device").unlink()
    put(base / "parent", netdev)
    put(base / "fw_ver", "")
    put(base / "ports/1/phys_state", "5: LinkUp")
    put(base / "ports/1/rate", "2.5 Gb/sec (1X SDR)")
