"""Rails of a pair: which RDMA device of each node faces which of the others. Pure, from the nodes' reports.

Devices face each other when their ports have addresses in one subnet. The main rail is the one whose device
on the head has the lowest PCI address; the second is its PCIe twin if there is a choice. Only ports with an
RDMA device are looked at, so a LAN port is never a rail.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .gids import describe, find_v2
from .link import Endpoint, Link, Rail, Unused
from .sysfs import Device

_LINK_LOCAL = ipaddress.IPv4Network("169.254.0.0/16")


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


def pair_rails(reports: Sequence[Sequence[Device]], wanted: str | int, max_rails: int, comm: str) -> Link:
    """Pair the devices that the ranks reported (in rank order) into rails.

    `wanted` is `auto`, 1 or 2; `max_rails` what the engine can use; `comm` is `roce` or `nccl`. What keeps
    the pair from being started is in `errors`, what only costs a rail in `warnings`.
    """
    paired = _by_subnet(reports)
    if not paired:
        seen = "; ".join(f"{rank_name(rank)}: {_seen(devices)}" for rank, devices in enumerate(reports))
        return Link(errors=(f"no CX7 subnet shared by {_names(len(reports))} ({seen})",))
    main, others = _main_first(paired)
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
    """Say what changed on a node since its configuration was written: lost addresses, moved GID indexes."""
    by_hca = {device.hca: device for device in devices}
    notes = []
    for entry in expected:
        device, address = by_hca.get(entry["hca"]), entry["address"]
        if device is None:
            notes.append(f"RoCE device {entry['hca']} of {entry['netdev']} is gone")
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


def _by_subnet(reports: Sequence[Sequence[Device]]) -> list[_Ends]:
    """Pair usable ends that are in each other's subnet; several in one subnet pair by their PCI order."""
    usable = [_usable(rank, devices) for rank, devices in enumerate(reports)]
    taken: set[tuple[int, str]] = set()
    paired: list[_Ends] = []
    for first in usable[0]:
        ends = [first]
        for others in usable[1:]:
            partner = next(
                (e for e in others if _same_subnet(first, e) and (e.rank, e.device.hca) not in taken), None
            )
            if partner:
                ends.append(partner)
        if len(ends) == len(reports) and (0, first.device.hca) not in taken:
            taken.update((end.rank, end.device.hca) for end in ends)
            paired.append(tuple(ends))
    return paired


def _usable(rank: int, devices: Sequence[Device]) -> list[_End]:
    """Ends with an address on a live port: those that stay after a reboot first, then by PCI address."""
    ends = [
        _End(rank, device, ipaddress.IPv4Interface(address))
        for device in sorted(devices, key=lambda device: (device.pci, device.hca))
        for address in device.addresses
        if device.up
    ]
    return sorted(ends, key=_is_link_local)


def _is_link_local(end: _End) -> bool:
    return end.address is not None and end.address.ip in _LINK_LOCAL


def _same_subnet(one: _End, other: _End) -> bool:
    """Each must see the other as a neighbour: prefix lengths may differ between the ends of a rail."""
    a, b = one.address, other.address
    return a is not None and b is not None and a.ip != b.ip and a.ip in b.network and b.ip in a.network


def _main_first(paired: Sequence[_Ends]) -> tuple[_Ends, list[_Ends]]:
    """Choose the main rail and order the others: its twin before the ports of another cable."""
    ordered = sorted(
        paired, key=lambda ends: (_is_link_local(ends[0]), ends[0].device.pci, ends[0].device.hca)
    )
    main = ordered[0]
    others = sorted(ordered[1:], key=lambda ends: not is_twin(main[0].device, ends[0].device))
    return main, others


def is_twin(one: Device, other: Device) -> bool:
    """One port of a card shows up in two PCIe domains, with the same tail (`f1np1`) in both names."""
    tail = one.netdev.rpartition("s0")[2] if "s0" in one.netdev else None
    same_function = one.pci.partition(":")[2] == other.pci.partition(":")[2]
    same_tail = tail is not None and other.netdev.endswith(f"s0{tail}")
    return one.pci != other.pci and (same_function or same_tail)


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
            return (
                f"rank {end.rank}: {end.device.hca} has no RoCE v2 GID for {end.address.ip}"
                f" (found: {describe(end.device.gids)})"
            )
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
        raise ValueError(f"{end.device.hca} has no RoCE v2 GID for {address}")
    device = end.device
    return Endpoint(end.rank, device.netdev, device.hca, address, found.index, device.mtu, device.pci)


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


def _names(count: int) -> str:
    names = [rank_name(rank) for rank in range(count)]
    return f"{', '.join(names[:-1])} and {names[-1]}"
