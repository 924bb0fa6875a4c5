"""Which hosts serve together: the group below a system's group, whose hosts have the ranks 0 to n-1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SYSTEMS = ("sparks", "stations")


class NoPair(ValueError):
    """The inventory does not say which pair a host is in; the message says what to write."""


@dataclass(frozen=True)
class Pair:
    """A pair and its hosts in rank order."""

    name: str
    hosts: tuple[str, ...]

    def facts(self, host: str) -> dict[str, Any]:
        """What tasks need to know."""
        return {
            "name": self.name,
            "rank": self.hosts.index(host),
            "hosts": list(self.hosts),
            "head": self.hosts[0],
            "workers": list(self.hosts[1:]),
        }


def find_pair(host: str, groups: Mapping[str, Sequence[str]], ranks: Mapping[str, Any]) -> Pair:
    """The pair of `host`; `ranks` is the host variable `rank` of every host that has one.

    Raises NoPair.
    """
    systems = [name for name in SYSTEMS if host in groups.get(name, ())]
    if not systems:
        raise NoPair(
            f"{host} is in no group below {' or '.join(SYSTEMS)}: put its pair's group under one of them"
        )
    system = systems[0]
    inside = set(groups[system])
    mine = sorted(
        name
        for name, hosts in groups.items()
        if host in hosts and set(hosts) <= inside and name not in ("all", system)
    )
    found = {name: by_rank for name in mine if (by_rank := _by_rank(groups[name], ranks))}
    if not found and (by_rank := _by_rank(groups[system], ranks)):
        return Pair(system, by_rank)
    if len(set(found.values())) > 1:
        raise NoPair(f"{host} is in several groups that could be its pair: {', '.join(found)}")
    if found:
        name = next(iter(found))
        return Pair(name, found[name])
    raise NoPair(_advice(host, mine or [system], groups, ranks))


def rank_number(value: Any) -> int | None:
    """A rank from what the inventory says, or None when that is no rank."""
    text = str(value).strip()
    return int(text) if text.isdigit() and not isinstance(value, bool) else None


def _by_rank(hosts: Sequence[str], ranks: Mapping[str, Any]) -> tuple[str, ...]:
    """The hosts in rank order if they are two or more with the ranks 0 to n-1, else nothing."""
    numbers = {host: rank_number(ranks.get(host)) for host in hosts}
    if len(hosts) < 2 or set(numbers.values()) != set(range(len(hosts))):
        return ()
    return tuple(sorted(hosts, key=lambda host: numbers[host] or 0))


def _advice(
    host: str, names: Sequence[str], groups: Mapping[str, Sequence[str]], ranks: Mapping[str, Any]
) -> str:
    name = max(names, key=lambda one: len(groups[one]))
    seen = ", ".join(f"{one} rank {ranks[one]}" if one in ranks else f"{one} no rank" for one in groups[name])
    return (
        f"{host}: the hosts of group {name} are no pair ({seen}): "
        "write rank: 0 on the head and rank: 1 on the worker, one group a pair"
    )
