"""What measured rates mean, judged by what the rails can carry: pure. It is told, and stops no play.

A rail carries what its cable does, and no more than its PCIe link: the twins of a Spark sit on four lanes
each, so 93 to 112 of the cable's 200 Gb/s are all that one of them moves, and both together about 190.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Of a PCIe link's bits about an eighth are headers and acknowledgements (best measured: 111.7 of 126 Gb/s).
_PCIE_PAYLOAD = 0.88
# What one queue pair moves out of a host's own memory at best, in Gb/s, however fast the link is.
_HOST_MEMORY = 230.0
# Below this share of what can be expected a rate is slow; good ones are measured from 0.83 on.
_GOOD = 0.75
# What a ConnectX-7 moves that did not come up well, in Gb/s, and the links on which that is known.
_DEGRADED, _CX7_LINK = (8.0, 25.0), (100.0, 200.0)


@dataclass(frozen=True)
class Way:
    """One direction of one rail: rate and what the sender's end can carry, in Gb/s; None is unknown."""

    rail: int
    sender: str
    receiver: str
    memory: str
    together: bool
    netdev: str
    gbits: float | None
    problem: str
    speed: float | None
    pcie: float | None

    @property
    def carries(self) -> float | None:
        """What can be expected; None where the link or PCIe is not known."""
        if self.speed is None or self.pcie is None:
            return None
        limit = min(self.speed, self.pcie * _PCIE_PAYLOAD)
        return min(limit, _HOST_MEMORY) if self.memory == "host" else limit


def report(
    found: Sequence[Mapping[str, Any]], names: Sequence[str], servers: Sequence[Mapping[str, Any]] = ()
) -> dict[str, list[str]]:
    """`lines` with every rate and `warnings`.

    `found` and `servers` are what the module returned on each node, by rank, as it measured and listened.
    """
    ways = [_way(run, name) for node, name in zip(found, names, strict=True) for run in node["runs"]]
    no_gpu = [f"{name}: {node['gpu_problem']}" for node, name in zip(found, names, strict=True)
              if node["gpu_problem"]]  # fmt: skip
    ways = [way for way in ways if way.memory == "host" or not no_gpu]
    lines: list[str] = []
    warnings = no_gpu + [
        f"{name}: {text}" for own, name in zip(servers, names, strict=False) for text in own["silent"]
    ]
    slow: set[Any] = set()
    for key, group in _groups(ways).items():
        lines.append(_line(group))
        warnings += [_unmeasured(way) for way in group if way.gbits is None]
        if not group[0].together and (said := _judge_rail(group)):
            warnings += said
            slow.add(key[:2])
        # With a rail that is slow alone the sum says nothing new; groups come in the order of the runs.
        elif group[0].together and key[:2] not in slow:
            warnings += _judge_together(group)
    if any(way.memory == "host" and _bound_by_memory(way) for way in ways):
        lines.append("220 to 230 Gb/s of 400 are normal for host memory and one queue pair")
    for node, name in zip(found, names, strict=True):
        warnings += [f"{name}: while the rails were measured, {text}" for text in node["rose"]]
    return {"lines": lines, "warnings": warnings}


def _way(run: Mapping[str, Any], name: str) -> Way:
    facts = ("rail", "memory", "together", "netdev", "gbits", "problem", "speed", "pcie")
    return Way(sender=name, receiver=run["to"], **{fact: run[fact] for fact in facts})


def _groups(ways: Iterable[Way]) -> dict[Any, list[Way]]:
    """Ways that belong together, by memory, ends and rail: both directions of one rail, or of all at once."""
    groups: dict[Any, list[Way]] = {}
    for way in ways:
        ends = tuple(sorted((way.sender, way.receiver)))
        groups.setdefault((way.memory, ends, way.together, way.together or way.rail), []).append(way)
    return groups


def _line(group: Sequence[Way]) -> str:
    rails = sorted({way.rail for way in group})
    title = f"{len(rails)} rails at once" if group[0].together else f"rail {rails[0]}"
    memory = ", GPU memory" if group[0].memory == "gpu" else ""
    parts = []
    for sender, receiver in dict.fromkeys((way.sender, way.receiver) for way in group):
        total = _total(way for way in group if way.sender == sender)
        parts.append(f"{sender} -> {receiver} {'not measured' if total is None else f'{total:.1f} Gb/s'}")
    return f"{title}{memory}: {', '.join(parts)}"


def _unmeasured(way: Way) -> str:
    at_once = " with the others" if way.together else ""
    memory = " in GPU memory" if way.memory == "gpu" else ""
    return (
        f"rail {way.rail} was not measured{at_once}{memory} ({way.sender} -> {way.receiver}): {way.problem}"
    )


def _judge_rail(group: Sequence[Way]) -> list[str]:
    """One rail alone, both directions: one text at most, the most exact one."""
    rated = sorted(((way.gbits, way) for way in group if way.gbits is not None), key=lambda one: one[0])
    if not rated:
        return []
    (slow, way), (fast, other) = rated[0], rated[-1]
    link = f"rail {way.rail} moves {slow:.1f} Gb/s"
    for one in group:
        if one.speed and one.pcie and one.pcie < one.speed / 2:
            return [
                f"{link} on a {one.speed:.0f} Gb/s link: PCIe of {one.netdev} on {one.sender} is up with "
                f"{one.pcie:.0f} Gb/s only; power-cycle {one.sender}"
            ]
    if all(_degraded(gbits, one) for gbits, one in rated):
        return [f"{link} on a {way.speed:.0f} Gb/s link (degraded CX7 start): power-cycle both nodes"]
    cure = "reseat the cable, then power-cycle both nodes"
    if slow < _GOOD * fast and not _slow(fast, other):
        back = f"{fast:.1f} Gb/s from {other.sender} to {other.receiver}"
        return [f"{link} from {way.sender} to {way.receiver}, but {back}: {cure}"]
    return [f"{link}, about {way.carries:.0f} are expected: {cure}"] if _slow(slow, way) else []


def _judge_together(group: Sequence[Way]) -> list[str]:
    """All rails at once, each direction, against the cables that they share."""
    found = []
    for sender, receiver in dict.fromkeys((way.sender, way.receiver) for way in group):
        ways = [way for way in group if way.sender == sender]
        total, expected = _total(ways), _cables(ways)
        if total is not None and expected is not None and total < _GOOD * expected:
            found.append(
                f"{len(ways)} rails at once move {total:.1f} Gb/s from {sender} to {receiver}, about "
                f"{expected:.0f} are expected"
            )
    return found


def _cables(ways: Sequence[Way]) -> float | None:
    """What the rails carry together. Where PCIe is too narrow for a cable, a port is twins that share it."""
    cables: dict[str, list[Way]] = {}
    for way in ways:
        port = re.search(r"np\d+$", way.netdev)
        twin = way.speed and way.pcie and way.pcie * _PCIE_PAYLOAD < way.speed
        cables.setdefault(port[0] if port and twin else way.netdev, []).append(way)
    sums = [_least(own[0].speed, _sum(way.carries for way in own)) for own in cables.values()]
    return _sum(sums)


def _total(ways: Iterable[Way]) -> float | None:
    return _sum(way.gbits for way in ways)


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum, or None when one is unknown."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def _least(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else min(one, other)


def _slow(gbits: float, way: Way) -> bool:
    return way.carries is not None and gbits < _GOOD * way.carries


def _degraded(gbits: float, way: Way) -> bool:
    fits = way.speed is not None and _CX7_LINK[0] <= way.speed <= _CX7_LINK[1]
    return fits and _DEGRADED[0] <= gbits <= _DEGRADED[1]


def _bound_by_memory(way: Way) -> bool:
    """Whether the host's memory, and not the link, sets the limit."""
    return way.carries == _HOST_MEMORY
