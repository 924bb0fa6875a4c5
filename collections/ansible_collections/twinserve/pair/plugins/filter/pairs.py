"""Filters over all pairs of a run, which ask for no settings: what the day-to-day commands show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.twinserve.pair.plugins.module_utils import (
    clean_text,
    logs_text,
    pair_report,
    redact,
    status_text,
)
from ansible_collections.twinserve.pair.plugins.module_utils.pair_finding import NoPair, find_pair


def pair_reports(
    hosts: Iterable[Mapping[str, Any]], groups: Mapping[str, Sequence[str]], played: Sequence[str]
) -> list[dict[str, Any]]:
    """One document a pair, of those that have a host in the run.

    `hosts` are the variables of all hosts of the inventory, `played` the names of those in the run.
    """
    every = {str(host["inventory_hostname"]): host for host in hosts}
    ranks = {name: host["rank"] for name, host in every.items() if "rank" in host}
    facts = {name: host.get("ansible_facts") or {} for name, host in every.items()}
    nodes = {name: seen["twinserve_node"] for name, seen in facts.items() if "twinserve_node" in seen}
    reports: dict[str, dict[str, Any]] = {}
    for host in played:
        try:
            pair = find_pair(host, groups, ranks)
        except NoPair as error:
            nobody = pair_report.report(host, [host], {})
            reports[host] = {**nobody, "health": "unhealthy", "problems": [str(error)]}
        else:
            reports.setdefault(pair.name, pair_report.report(pair.name, pair.hosts, nodes))
    return list(reports.values())


def report_of(reports: Iterable[Mapping[str, Any]], host: str) -> Mapping[str, Any]:
    """The document of the pair that a host is in."""
    return next(one for one in reports if host in [rank["name"] for rank in one["ranks"]])


def tells(report: Mapping[str, Any], host: str, left: Sequence[str]) -> bool:
    """Whether this host speaks for its pair: the first of those that are left in the run."""
    names = [rank["name"] for rank in report["ranks"]]
    return host == next((name for name in names if name in left), None)


def proxy_passwords(given: Any) -> list[str]:
    """The secrets of logins in `proxy_env`, also when it is none that the settings take."""
    return redact.passwords(map(str, given.values() if isinstance(given, Mapping) else [given]))


class FilterModule:
    """Names as used in YAML."""

    def filters(self) -> dict[str, Any]:
        """Map each name to its function."""
        return {
            "pair_reports": pair_reports,
            "report_of": report_of,
            "tells": tells,
            "clean_screen": clean_text.screen,
            "clean_running": clean_text.running,
            "clean_questions": clean_text.questions,
            "clean_choice": clean_text.choice,
            "clean_rest": clean_text.rest,
            "logs_screen": logs_text.screen,
            "proxy_passwords": proxy_passwords,
            "status_screen": status_text.screen,
            "status_overview": status_text.overview,
        }
