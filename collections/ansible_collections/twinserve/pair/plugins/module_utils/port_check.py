"""What keeps one end of a rail from carrying RDMA, from what its node says of the device."""

from __future__ import annotations

from collections.abc import Callable

from .gids import find_v2, no_v2
from .lost_device import read_error, text
from .sysfs import Device


def port_problem(
    hca: str, netdev: str, device: Device | None, kernel_says: Callable[[], str | None] = read_error
) -> str | None:
    """Say why the device or its port cannot be used now; for one that is gone the kernel log is asked."""
    if device is None:
        return text(netdev, kernel_says())
    if device.netdev != netdev:
        return f"{hca} belongs to {device.netdev}, not to {netdev}"
    if device.carrier is False:
        return f"{netdev} has no carrier: look at the cable, and whether the other node is on"
    if device.state != "ACTIVE":
        return f"{hca} is {device.state or 'in an unknown state'}, not ACTIVE"
    if not device.up:
        return f"{netdev} is {device.operstate}"
    return None


def gid_problem(device: Device, address: str) -> str | None:
    """Say that the device has no RoCE v2 GID for its port's address (with or without prefix length)."""
    return None if find_v2(device.gids, address) else no_v2(device.hca, address, device.gids)
