"""A rank's own proof of its rails, right before its container starts: GIDs and addresses move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..gids import find_v2
from ..kernel_files import read_attr
from ..port_check import gid_problem, port_problem
from ..sysfs import Device


def rail_problem(rail: Mapping[str, Any], device: Device | None) -> str | None:
    """Say why this rail cannot be used now; None when it can."""
    hca, netdev, address = rail["hca"], rail["netdev"], rail["address"]
    if (problem := port_problem(hca, netdev, device)) or device is None:
        return problem
    if address not in [known.partition("/")[0] for known in device.addresses]:
        return f"{netdev} lost {address}; run the fabric play"
    found = find_v2(device.gids, address)
    if found is None:
        return gid_problem(device, address)
    if found.index != rail["gid_index"]:
        return (
            f"the GID of {address} on {hca} moved from {rail['gid_index']} to {found.index} during this start"
        )
    return None


def rail_problems(rails: Sequence[Mapping[str, Any]], devices: Iterable[Device]) -> list[str]:
    """Return what is wrong with the rails of this rank, one sentence each."""
    by_hca = {device.hca: device for device in devices}
    found = (rail_problem(rail, by_hca.get(rail["hca"])) for rail in rails)
    return [problem for problem in found if problem]


def dark_ports(rails: Iterable[Mapping[str, Any]], root: Path = Path("/")) -> list[str]:
    """Return the ports of these rails that have no live other end now."""
    ports = [str(rail["netdev"]) for rail in rails]
    return [port for port in ports if read_attr(root / "sys/class/net" / port / "carrier") != "1"]
