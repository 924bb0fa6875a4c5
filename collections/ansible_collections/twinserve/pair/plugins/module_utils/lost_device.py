"""RDMA devices that are gone while their node runs on: after a PCIe error only a power cycle helps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .kernel_files import link_name, names
from .netdevs import netdev_names
from .shell import CommandError, run

# A fatal error of the bus, and what mlx5 says when the card stops answering.
ERROR = re.compile(
    r"\(Fatal\)|mlx5_core .*(?:fatal error|poll_health|health_try_recover|pci_err_detected)", re.IGNORECASE
)
_LINES = 5000


def text(netdev: str, pcie_error: str | None) -> str:
    """Say that the RDMA device of a port is gone, and what to do."""
    if pcie_error:
        return f"RoCE device of {netdev} is gone (PCIe error in the kernel log): power-cycle the node"
    return f"RoCE device of {netdev} is gone: look at rdma link; if it stays away, power-cycle the node"


def find_error(log: str) -> str | None:
    """The last line of a kernel log that tells of a fatal PCIe error or of a dead card."""
    return next((line.strip() for line in reversed(log.splitlines()) if ERROR.search(line)), None)


def read_error() -> str | None:
    """Look for it in this boot's kernel log; a log that cannot be read tells nothing."""
    try:
        return find_error(kernel_log())
    except CommandError:
        return None


def kernel_log(*options: str, timeout: float = 20.0) -> str:
    """The last lines of this boot's kernel log, perhaps only those that `options` of journalctl choose."""
    argv = ["journalctl", "-k", "-b", "-q", "-o", "cat", "--no-pager", "-n", str(_LINES), *options]
    return run(argv, timeout=timeout)


def lost_ports(root: Path = Path("/")) -> list[str]:
    """Ports of an mlx5 card without an RDMA device, while the node has others: then its driver is loaded.

    A port that is bonded into another's RDMA device (RoCE LAG) is one of them too, and not lost.
    """
    if not names(root / "sys/class/infiniband"):
        return []
    base = root / "sys/class/net"
    return [
        name
        for name in netdev_names(root)
        if link_name(base / name / "device/driver") == "mlx5_core"
        and not names(base / name / "device/infiniband")
    ]


def read_lost(root: Path = Path("/")) -> list[dict[str, Any]]:
    """Such ports, each with what the kernel log says of a PCIe error."""
    found = lost_ports(root)
    error = read_error() if found else None
    return [{"netdev": name, "pcie_error": error} for name in found]


def faults(node: Mapping[str, Any]) -> list[str]:
    """What is wrong with a node by its probe: only what the kernel log confirms."""
    lost: Sequence[Mapping[str, Any]] = node.get("lost_devices") or []
    return [text(one["netdev"], one["pcie_error"]) for one in lost if one["pcie_error"]]


def gone(expected: Sequence[Mapping[str, Any]], hcas: Sequence[str]) -> list[str]:
    """Ports of the expected rails whose devices are not among `hcas`."""
    return [str(end["netdev"]) for end in expected if end["hca"] not in hcas]
