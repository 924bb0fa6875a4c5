"""Rails of a pair: which RDMA device of each node faces which of the others. Pure, from the nodes' reports.

Devices face each other as `neighbours` says. The main rail is the one whose device on the head has the
lowest PCI address; the second is its PCIe twin if there is a choice. Only ports with an RDMA device are
looked at, so a LAN port is never a rail.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import lost_device
from .gids import find_v2, no_v2
from .link import Endpoint, Link, Rail, Unused
from .neighbours import facing, is_link_local, is_twin, neighbours, shared
from .sysfs import Device


@dataclass(frozen=True)
class _End:
    """A device with one of its addresses, before its GID is known. Only a lone twin may lack the address."""

    rank: int
    device: Device
    address: ipaddress.IPv4Interface | None

    def __str__(self) -> str:
        address = self.address.ip if self.address else "-"
        down = "" if self.device.up else ", down"
        return f"{self.device.hca} ({address}, MTU {self.device.mtu}{down})"


_Ends = tuple[_End, ...]


def rank_name(rank: int) -> str:
    """Return what people call a rank: head, worker, and beyond two `rank N`."""
    return ("head", "worker")[rank] if rank < 2 else f"rank {rank}"


def pair_rails(
    reports: Sequence[Sequence[Device]],
    wanted: str | int,
    max_rails: int,
    comm: str,
    mains: Sequence[str | None] = (),
) -> Link:
    """Pair the devices that the ranks reported (in rank order) into rails.

    `wanted` is `auto`, 1 or 2; `max_rails` what the engine can use; `comm` is `roce` or `nccl`; `mains` the
    ports that make the main rail, by rank, where they are set. What keeps the pair from being started is in
    `errors`, what only costs a rail in `warnings`.
    """
    paired = _by_subnet(reports, mains)
    if not paired:
        seen = "; ".join(f"{rank_name(rank)}: {_seen(devices)}" for rank, devices in enumerate(reports))
        return Link(errors=(f"no CX7 subnet shared by {rank_names(len(reports))} ({seen})",))
    main, others = paired[0], paired[1:]
    if problem := _mtu_problem(0, main) or _gid_problem(main):
        return Link(errors=(problem,))
    rails, unused, warnings = [_rail(main)], [], list(_link_local_warning(main))
    limit = max_rails if wanted == "auto" else min(int(wanted), max_rails)
    if limit > 1:
        chosen = others[: limit - 1] or _bare_twins(reports, main)
        for number, ends in enumerate(chosen, start=1):
            problem = _reach_problem(number, ends) or _gid_problem(ends) or _index_problem(rails, ends, comm)
            if problem:
                warnings.append(problem)
                unused.append(Unused(tuple(_seen_end(end) for end in ends), problem))
            else:
                rails.append(_rail(ends))
    return _judge(Link(tuple(rails), tuple(warnings), unused=tuple(unused)), wanted, max_rails)


def without_rails(link: Link, dead: Mapping[int, str], wanted: str | int, max_rails: int) -> Link:
    """Take rails away that did not pass their proof (`dead`: number -> why). Main rail dead: an error."""
    if 0 in dead:
        return replace(
            link, errors=(*link.errors, f"{_text(0, link.rails[0])} does not reach the peer: {dead[0]}")
        )
    lost = tuple(
        Unused(link.rails[number], f"{_text(number, link.rails[number])} does not reach the peer: not used")
        for number in sorted(dead)
    )
    kept = tuple(rail for number, rail in enumerate(link.rails) if number not in dead)
    warnings = (*link.warnings, *(one.reason for one in lost))
    shorter = replace(link, rails=kept, warnings=warnings, unused=(*link.unused, *lost))
    return _judge(shorter, wanted, max_rails)


def drift(expected: Sequence[Mapping[str, Any]], devices: Iterable[Device]) -> list[str]:
    """Say what changed on a node since its configuration was written: lost addresses, moved GID indexes.

    A device that a PCIe error took is not told here: it keeps the pair from being started.
    """
    by_hca = {device.hca: device for device in devices}
    notes = []
    for entry in expected:
        device, address = by_hca.get(entry["hca"]), entry["address"]
        if device is None:
            notes.append(lost_device.text(entry["netdev"], None))
        elif address not in [known.partition("/")[0] for known in device.addresses]:
            notes.append(f"{device.netdev} lost {address}; run the fabric play")
        elif (found := find_v2(device.gids, address)) and found.index != entry.get("gid_index"):
            old = entry.get("gid_index")
            if old is not None:
                notes.append(
                    f"GID index of {device.hca} changed {old} -> {found.index} since the unit was rendered"
                )
    return notes


def _judge(link: Link, wanted: str | int, max_rails: int) -> Link:
    """Where two rails were asked for, one is an error that carries the reason."""
    if wanted == "auto" or len(link.rails) >= min(int(wanted), max_rails):
        return link
    why = "; ".join(link.warnings) or "no second rail was found"
    return replace(
        link, errors=(*link.errors, f"rails is {wanted}, but only {len(link.rails)} can be used: {why}")
    )


def _by_subnet(reports: Sequence[Sequence[Device]], mains: Sequence[str | None]) -> list[_Ends]:
    """The devices that face each other, main rail first, each with the address by which it does."""
    return [
        tuple(
            _End(rank, device, ipaddress.IPv4Interface(address))
            for rank, (device, address) in enumerate(zip(devices, shared(devices) or (), strict=True))
        )
        for devices in facing(reports, mains=mains)
    ]


def _is_link_local(end: _End) -> bool:
    return end.address is not None and is_link_local(str(end.address))


def _same_subnet(one: _End, other: _End) -> bool:
    a, b = one.address, other.address
    return a is not None and b is not None and neighbours(str(a), str(b))


def _bare_twins(reports: Sequence[Sequence[Device]], main: _Ends) -> list[_Ends]:
    """Return the main rail's twins that share no subnet, so that the loss of the second rail has a reason."""
    twins = []
    for end in main:
        found = [device for device in reports[end.rank] if is_twin(end.device, device)]
        if not found:
            return []
        address = ipaddress.IPv4Interface(found[0].addresses[0]) if found[0].addresses else None
        twins.append(_End(end.rank, found[0], address))
    return [tuple(twins)]


def _reach_problem(number: int, ends: _Ends) -> str | None:
    reachable = all(end.device.up and _same_subnet(ends[0], end) for end in ends[1:]) and ends[0].device.up
    if reachable and _mtu_problem(number, ends) is None:
        return None
    return f"rail {number} {' <-> '.join(str(end) for end in ends)} does not reach the peer: not used"


def _mtu_problem(number: int, ends: _Ends) -> str | None:
    if len({end.device.mtu for end in ends}) == 1:
        return None
    seen = ", ".join(f"{rank_name(end.rank)} {end.device.mtu}" for end in ends)
    return f"rail {number} MTU differs: {seen}; set both to the same value"


def _gid_problem(ends: _Ends) -> str | None:
    for end in ends:
        if end.address and find_v2(end.device.gids, str(end.address.ip)) is None:
            return f"rank {end.rank}: {no_v2(end.device.hca, str(end.address), end.device.gids)}"
    return None


def _index_problem(rails: Sequence[Rail], ends: _Ends, comm: str) -> str | None:
    """RoCE without NCCL takes one index a rank for all its devices; NCCL can choose per device."""
    if comm != "roce":
        return None
    for main, end in zip(rails[0], _rail(ends), strict=True):
        if main.gid_index != end.gid_index:
            return (
                f"rank {end.rank}: {end.hca} has its GID at {end.gid_index}, "
                f"{main.hca} at {main.gid_index}; using one rail"
            )
    return None


def _rail(ends: _Ends) -> Rail:
    return tuple(_endpoint(end) for end in ends)


def _endpoint(end: _End) -> Endpoint:
    address = str(end.address.ip) if end.address else ""
    found = find_v2(end.device.gids, address)
    if found is None:
        raise ValueError(no_v2(end.device.hca, address, end.device.gids))
    device = end.device
    place = (end.rank, device.netdev, device.hca, address, found.index, device.mtu, device.pci)
    return Endpoint(*place, mac=device.mac, shares_subnet=device.shares_subnet)


def _seen_end(end: _End) -> Endpoint:
    """The end of a rail that is not used: its device may have no address, or no GID for it."""
    device, address = end.device, str(end.address.ip) if end.address else ""
    found = find_v2(device.gids, address) if address else None
    index = found.index if found else None
    return Endpoint(end.rank, device.netdev, device.hca, address, index, device.mtu, device.pci)


def _text(number: int, rail: Rail) -> str:
    return f"rail {number} " + " <-> ".join(f"{end.hca} ({end.address}, MTU {end.mtu})" for end in rail)


def _link_local_warning(main: _Ends) -> Iterable[str]:
    if any(_is_link_local(end) for end in main):
        yield "rail 0 uses a link-local address that changes at reboot"


def _seen(devices: Sequence[Device]) -> str:
    words = [f"{d.hca} {', '.join(d.addresses) or 'no address'}{'' if d.up else ' down'}" for d in devices]
    return ", ".join(words) or "no RDMA device"


def rank_names(count: int) -> str:
    """All ranks in words: `head and worker`."""
    names = [rank_name(rank) for rank in range(count)]
    return f"{', '.join(names[:-1])} and {names[-1]}"
