"""Which of a node's RDMA devices the settings allow: `nccl_ib_hca` (NCCL's selector) and `fabric_netdev`."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from .rails import is_twin, rank_name
from .sysfs import Device


class SelectionError(ValueError):
    """The settings name devices that are not there; the text says which are."""


def select_devices(
    devices: Sequence[Device], selector: str | None, netdev: str | None, who: str
) -> list[Device]:
    """Return the devices that may become rails of the node that people call `who`."""
    chosen = list(devices)
    if selector:
        chosen = [device for device in devices if matches(selector, device.hca)]
        if not chosen:
            present = ", ".join(device.hca for device in devices) or "none"
            raise SelectionError(f"nccl_ib_hca {selector} matches no RoCE device; present: {present}")
    if netdev:
        main = next((device for device in chosen if device.netdev == netdev), None)
        if main is None or not main.up:
            live = ", ".join(device.netdev for device in chosen if device.up) or "none"
            state = "no RoCE port" if main is None else "down"
            raise SelectionError(f"{netdev} is {state} on the {who}; up RoCE ports: {live}")
        chosen = [device for device in chosen if device is main or is_twin(main, device)]
    return chosen


def matches(selector: str, hca: str) -> bool:
    """Whether NCCL's selector takes a device: `^` excludes, `=` means exact names, else they are prefixes."""
    text = selector.strip()
    excluding, text = text.startswith("^"), text.removeprefix("^")
    exact, text = text.startswith("="), text.removeprefix("=")
    names = [entry.partition(":")[0].strip() for entry in text.split(",") if entry.strip()]
    hit = any(hca == name if exact else hca.startswith(name) for name in names)
    return hit is not excluding


def unmatched(chosen: Sequence[Sequence[Device]], selectors: Sequence[str | None]) -> list[str]:
    """Say which devices were named in a selector but face none of another rank."""
    problems = []
    for rank, (devices, selector) in enumerate(zip(chosen, selectors, strict=True)):
        if not selector or selector.startswith("^"):
            continue
        others = [other for peer, found in enumerate(chosen) if peer != rank for other in found]
        for device in devices:
            if device.up and not any(_face(device, other) for other in others):
                shown = ", ".join(device.addresses) or "no address"
                peer_name = rank_name(1 if rank == 0 else 0)
                problems.append(f"rank {rank}: {device.hca} ({shown}) shares no subnet with the {peer_name}")
    return problems


def _face(one: Device, other: Device) -> bool:
    mine, theirs = (
        [ipaddress.IPv4Interface(address) for address in device.addresses] for device in (one, other)
    )
    return any(a.ip in b.network and b.ip in a.network for a in mine for b in theirs)
