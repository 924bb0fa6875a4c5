"""Filters over the hosts of a pair, by rank, as the inventory and their probes describe them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ansible_collections.twinserve.pair.plugins.module_utils import (
    host_names,
    model_transfer,
    preview,
    render,
)
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.client import netloc

_LEFT_OUT = "it is not in this run"


def management_address(host: Mapping[str, Any]) -> str:
    """Where ssh reaches a host: its `ansible_host`, else its name in the inventory."""
    return str(host.get("ansible_host") or host["inventory_hostname"])


def ssh_port(host: Mapping[str, Any]) -> int:
    """The port at which ssh reaches a host."""
    return int(host.get("ansible_port") or host.get("ansible_ssh_port") or 22)


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


def unseen(hosts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Hosts of the pair that this run could not look at, each with a sentence that says why."""
    found = {}
    for host in hosts:
        if not _fact(host, "twinserve_node"):
            name, said = str(host["inventory_hostname"]), (host.get("__preflight_looked") or {}).get("msg")
            why = str(said or _LEFT_OUT).strip().removeprefix("Task failed: ")
            found[name] = f"{name} cannot be looked at: {why}"
    return found


def way_to_see(hosts: Iterable[Mapping[str, Any]], pair: str) -> str:
    """What to do so that the next run sees the whole pair."""
    missing = unseen(hosts)
    if all(why.endswith(_LEFT_OUT) for why in missing.values()):
        return f"remove --limit, or name the pair: --limit {pair}"
    return f"switch {' and '.join(missing)} on, or mend the way to it, then run this again"


def snapshots_to_ask(
    hosts: Iterable[Mapping[str, Any]], wanted: Sequence[Mapping[str, str]], prepare: str
) -> list[Mapping[str, str]]:
    """Snapshots that a node of the pair lacks, or that will be fetched anew: what the hub is asked about."""
    caches = [_fact(host, "twinserve_node").get("hf") for host in hosts]
    if prepare == "never" or not all(caches):
        return []
    lacking = [model_transfer.missing(wanted, cache["snapshots"], prepare) for cache in caches if cache]
    return [one for one in wanted if any(one in some for some in lacking)]


def unseen_report(hosts: Iterable[Mapping[str, Any]], release: Mapping[str, Any], pair: str) -> list[str]:
    """What is known of a pair that cannot be seen whole, with each rank's command."""
    ranks = list(hosts)
    names = [str(host["inventory_hostname"]) for host in ranks]
    nodes = [_fact(host, "twinserve_node") or None for host in ranks]
    settings = [_fact(host, "twinserve_settings") or _fact(ranks[0], "twinserve_settings") for host in ranks]
    plans = render.rank_plans(settings, release, preview.inputs(nodes, names, settings, release), pair)
    return preview.report(names, nodes, list(unseen(ranks).values()), preview.commands(plans, names, nodes))


def _fact(host: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (host.get("ansible_facts") or {}).get(name) or {}
    return found


class FilterModule:
    """Names as used in YAML."""

    def filters(self) -> dict[str, Any]:
        """Map each name to its function."""
        return {
            "management_address": management_address,
            "ssh_port": ssh_port,
            "netloc": netloc,
            "names_to_resolve": names_to_resolve,
            "control_ways": control_ways,
            "snapshots_to_ask": snapshots_to_ask,
            "unseen": unseen,
            "way_to_see": way_to_see,
            "unseen_report": unseen_report,
            "rank_commands": preview.commands,
        }
