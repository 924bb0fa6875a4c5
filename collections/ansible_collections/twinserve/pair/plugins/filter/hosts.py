"""Filters over the hosts of a pair, by rank, as the inventory and their probes describe them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ansible_collections.twinserve.pair.plugins.module_utils import host_names


def management_address(host: Mapping[str, Any]) -> str:
    """Where ssh reaches a host: its `ansible_host`, else its name in the inventory."""
    return str(host.get("ansible_host") or host["inventory_hostname"])


def names_to_resolve(hosts: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names by which the head must know others: workers, and peers on the link."""
    ranks = list(hosts)
    settings = [_fact(host, "twinserve_settings") for host in ranks]
    workers = [management_address(host) for host in ranks[1:]]
    return host_names.to_resolve([*workers, *(own.get("fabric_peer") for own in settings)])


def control_ways(hosts: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Where the head reaches each host for control: `address`, a `note`, a `fault`. Its own is as given."""
    ranks = list(hosts)
    given = [management_address(host) for host in ranks]
    head, head_name = _fact(ranks[0], "twinserve_node"), str(ranks[0]["inventory_hostname"])
    ways = [host_names.Way(given[0])]
    for host, address in zip(ranks[1:], given[1:], strict=True):
        names, node = (head_name, str(host["inventory_hostname"])), _fact(host, "twinserve_node")
        ways.append(host_names.way(address, names, head, node) if head and node else host_names.Way(address))
    return [asdict(way) for way in ways]


def _fact(host: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (host.get("ansible_facts") or {}).get(name) or {}
    return found


class FilterModule:
    """Names as used in YAML."""

    def filters(self) -> dict[str, Any]:
        """Map each name to its function."""
        return {
            "management_address": management_address,
            "names_to_resolve": names_to_resolve,
            "control_ways": control_ways,
        }
