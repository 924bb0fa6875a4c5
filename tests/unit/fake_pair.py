"""What two cabled Sparks report about their RDMA devices: the shared fixture of the fabric cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ansible_collections.twinserve.pair.plugins.module_utils.gids import Gid, mapped
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device

LINK_LOCAL = "fe80:0000:0000:0000:4ebb:47ff:fe00:0110"
V1, V2 = "IB/RoCE v1", "RoCE v2"


def gids(address: str | None, index: int = 3) -> tuple[Gid, ...]:
    """A table with the link-local entries and, if there is an address, its v2 entry at `index`."""
    own = (Gid(index - 1, mapped(address), V1), Gid(index, mapped(address), V2)) if address else ()
    return (Gid(0, LINK_LOCAL, V1), Gid(1, LINK_LOCAL, V2), *own)


def device(hca: str, netdev: str, pci: str, address: str | None, index: int = 3, **changes: Any) -> Device:
    """A device that is up, with one address (with prefix) or none."""
    plain = address.partition("/")[0] if address else None
    made = Device(
        hca,
        netdev,
        pci,
        "ACTIVE",
        "up",
        True,
        9000,
        200000,
        (address,) if address else (),
        gids(plain, index),
    )
    return replace(made, **changes)


def head(main: int = 3, twin: int = 3, **changes: Mapping[str, Any]) -> list[Device]:
    """The head's devices; `changes` go by device name."""
    made = [
        device("rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", "198.51.100.1/24", main),
        device("roceP2p1s0f1", "enP2p1s0f1np1", "0002:01:00.1", "203.0.113.1/24", twin),
        down("rocep1s0f0", "enp1s0f0np0", "0000:01:00.0"),
    ]
    return [replace(one, **changes.get(one.hca, {})) for one in made]


def worker(main: int = 3, twin: int = 3, **changes: Mapping[str, Any]) -> list[Device]:
    """The worker's devices, cabled on its other port."""
    made = [
        device("rocep1s0f0", "enp1s0f0np0", "0000:01:00.0", "198.51.100.2/24", main),
        device("roceP2p1s0f0", "enP2p1s0f0np0", "0002:01:00.0", "203.0.113.2/24", twin),
        down("rocep1s0f1", "enp1s0f1np1", "0000:01:00.1"),
    ]
    return [replace(one, **changes.get(one.hca, {})) for one in made]


def down(hca: str, netdev: str, pci: str) -> Device:
    """A device without a cable."""
    return device(hca, netdev, pci, None, state="DOWN", operstate="down", carrier=False, speed=None)
