"""Which of a node's RDMA devices the settings allow: `nccl_ib_hca` (NCCL's selector) and `fabric_netdev`."""

from __future__ import annotations

from collections.abc import Sequence

from .neighbours import AnyEnd, End, shared
from .rails import rank_name


class SelectionError(ValueError):
    """The settings name devices that are not there; the text says which are."""


def select_devices(
    devices: Sequence[AnyEnd], selector: str | None, netdev: str | None, who: str
) -> list[AnyEnd]:
    """Return the devices that may become rails of the node that people call `who`.

    `netdev` must be a live one of them: it becomes the main rail.
    """
    chosen = allowed(devices, selector)
    if netdev and not any(device.netdev == netdev and device.up for device in chosen):
        live = ", ".join(device.netdev for device in chosen if device.up) or "none"
        state = "down" if any(device.netdev == netdev for device in chosen) else "no RoCE port"
        raise SelectionError(f"{netdev} is {state} on the {who}; up RoCE ports: {live}")
    return chosen


def allowed(ends: Sequence[AnyEnd], selector: str | None) -> list[AnyEnd]:
    """Those that NCCL's selector takes, all without one. Raises SelectionError when it takes none."""
    if not selector:
        return list(ends)
    taken = matching(selector, [end.hca for end in ends])
    if not taken:
        present = ", ".join(end.hca for end in ends) or "none"
        raise SelectionError(f"nccl_ib_hca {selector} matches no RoCE device; present: {present}")
    return [end for end in ends if end.hca in taken]


def matching(selector: str, hcas: Sequence[str]) -> list[str]:
    """What NCCL's selector takes: `^` excludes, `=` means exact names, else they are prefixes.

    Other than in NCCL a device's whole name means that device alone: `mlx5_1` does not take `mlx5_10` too.
    """
    text = selector.strip()
    excluding, text = text.startswith("^"), text.removeprefix("^")
    exact, text = text.startswith("="), text.removeprefix("=")
    hit: set[str] = set()
    for name in (entry.partition(":")[0].strip() for entry in text.split(",") if entry.strip()):
        whole = exact or name in hcas
        hit.update(hca for hca in hcas if (hca == name if whole else hca.startswith(name)))
    return [hca for hca in hcas if (hca in hit) is not excluding]


def unmatched(
    chosen: Sequence[Sequence[End]],
    selectors: Sequence[str | None],
    rails: Sequence[Sequence[End]] = (),
) -> list[str]:
    """Say which live devices were named in a selector but face none of another rank.

    `rails` are ends (by rank) that will face each other, although they do not yet.
    """
    problems = []
    for rank, (devices, selector) in enumerate(zip(chosen, selectors, strict=True)):
        if not selector or selector.strip().startswith("^"):
            continue
        others = [other for peer, found in enumerate(chosen) if peer != rank for other in found]
        for device in devices:
            paired = not device.up or any(rail[rank] == device for rail in rails)
            if not paired and not any(shared((device, other)) for other in others):
                shown = ", ".join(device.addresses) or "no address"
                peer_name = rank_name(1 if rank == 0 else 0)
                problems.append(f"rank {rank}: {device.hca} ({shown}) shares no subnet with the {peer_name}")
    return problems
