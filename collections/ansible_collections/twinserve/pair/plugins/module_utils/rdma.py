"""A node's fabric: devices with their hardware, ports with their owners, device files, programs.

Each part is read on its own, so that one that cannot be read does not hide the others.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import network_owner, sysfs
from .hardware import read_hardware
from .kernel_files import names
from .lost_device import read_lost
from .netdevs import read_links
from .shell import CommandError

TOOLS = (
    *("ip", "ping", "rdma", "ethtool", "nmcli", "netplan", "networkctl", "lspci"),
    *("ibv_devinfo", "ib_write_bw", "ib_read_bw", "ib_send_bw", "ibdev2netdev", "show_gids", "mlnx_qos"),
)
# Of a port when nobody could say who configured it.
_UNKNOWN: dict[str, Any] = {
    "service": None,
    "profile": None,
    "files": [],
    "lasting": None,
    "by_hand": [],
    "link_local": False,
}


def read_devices(
    root: Path = Path("/"), addresses: Mapping[str, Sequence[str]] | None = None
) -> list[dict[str, Any]]:
    """All RoCE devices in the order of their PCI addresses, each as rails see it, with its hardware.

    `addresses` maps port names to IPv4 addresses; left out, `ip` is asked.
    """
    devices = sysfs.read_devices(root, addresses)
    return [device.as_dict() | read_hardware(root, device.hca) for device in devices]


def device_files(folder: Path = Path("/dev/infiniband")) -> list[str]:
    """Names of the device files by which programs reach the RDMA devices; none without the modules."""
    # Beside them udev makes folders of links to the same files.
    return [name for name in names(folder) if (folder / name).is_char_device()]


def read_tools() -> dict[str, str | None]:
    """Programs for RDMA and for the network, with their paths; None for one that is not installed."""
    return {name: shutil.which(name) for name in TOOLS}


def read_rdma(root: Path = Path("/")) -> dict[str, Any]:
    """Everything. What cannot be read is empty, with its reason by part (or `devices.NAME`) in `errors`."""
    errors: dict[str, str] = {}
    network = _part(errors, "makers", network_owner.read_network, None)
    if network is None:
        network = {"links": _part(errors, "ports", read_links, {}), "makers": {}}
    addresses = {name: link["addresses"] for name, link in network["links"].items()}
    devices = _devices(root, addresses, errors)
    return {
        "devices": devices,
        "ports": join_ports(network, devices),
        "lost": _part(errors, "lost", lambda: read_lost(root), []),
        "char_devices": _part(errors, "char_devices", lambda: _char_devices(root), []),
        "tools": read_tools(),
        "errors": errors,
    }


def join_ports(network: Mapping[str, Any], devices: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The node's ports by name, each with its RDMA device, if it has one, and who configured it."""
    hcas = {device["netdev"]: device["hca"] for device in devices}
    return [
        {"netdev": name, "hca": hcas.get(name), **link, **network["makers"].get(name, _UNKNOWN)}
        for name, link in sorted(network["links"].items())
    ]


def _char_devices(root: Path) -> list[str]:
    return [f"/dev/infiniband/{name}" for name in device_files(root / "dev/infiniband")]


def _devices(
    root: Path, addresses: Mapping[str, Sequence[str]], errors: dict[str, str]
) -> list[dict[str, Any]]:
    found, hardware = [], {}
    for hca in _part(errors, "devices", lambda: sysfs.device_names(root), []):
        try:
            if device := sysfs.read_device(root, hca, addresses):
                hardware[hca] = read_hardware(root, hca)
                found.append(device)
        except OSError as error:
            errors[f"devices.{hca}"] = str(error)
    return [device.as_dict() | hardware[device.hca] for device in sysfs.in_order(found)]


def _part(errors: dict[str, str], name: str, reader: Callable[[], Any], nothing: Any) -> Any:
    try:
        return reader()
    except (CommandError, OSError, ValueError, KeyError) as error:
        errors[name] = str(error)
        return nothing
