"""Filters that put together what doctor.yml found out about a pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.twinserve.pair.plugins.filter.hosts import management_address
from ansible_collections.twinserve.pair.plugins.filter.nodes import plan_fabric
from ansible_collections.twinserve.pair.plugins.module_utils import (
    bandwidth_judge,
    bandwidth_plan,
    findings,
    firewall_plan,
    rail_verdict,
    services,
)
from ansible_collections.twinserve.pair.plugins.module_utils.findings import Finding


def engine_signs(hosts: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """What failures of the engine look like: by the release that is set, else by what the head was given."""
    facts = [host.get("ansible_facts") or {} for host in hosts]
    releases = [found["twinserve_release"] for found in facts if found.get("twinserve_release")]
    configs = [(found.get("twinserve_node") or {}).get("pair_config") for found in facts]
    written: list[Mapping[str, Any]] = [config["patterns"] for config in configs if config]
    for known in [*releases, *written]:
        rules = [*known.get("failures", []), *known.get("alarms", [])]
        return [{"pattern": rule["pattern"], "cure": rule["cure"]} for rule in rules]
    return []


def doctor_findings(hosts: Iterable[Mapping[str, Any]], report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All that was found of the pair of `report`, what has to be mended first.

    `hosts` are the variables of all hosts in the run, with what the role's tasks left there.
    """
    by_name = {str(host["inventory_hostname"]): host for host in hosts}
    names = [rank["name"] for rank in report["ranks"]]
    members = [by_name.get(name, {"inventory_hostname": name}) for name in names]
    found = [*findings.of_pair(report), *_link(members), *_firewall(members), *_gpu_memory(members)]
    for name, host in zip(names, members, strict=True):
        found += findings.of_node(
            name,
            refused=host.get("__operate_refused"),
            preflight=host.get("__preflight_found"),
            signs=host.get("__operate_signs"),
        )
    return findings.ordered(found)


def _link(members: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """What the fabric role would refuse or warn of; it needs a look at all nodes, and their settings."""
    yield from findings.of_link(_plans(members))


def _firewall(members: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Nodes whose engine listens to everybody although it should not."""
    for host in members:
        facts = host.get("ansible_facts") or {}
        text = firewall_plan.problem(facts.get("twinserve_node") or {}, facts.get("twinserve_settings") or {})
        if text:
            yield Finding(findings.WARNING, str(host["inventory_hostname"]), text)


def _plans(members: Sequence[Mapping[str, Any]], **changes: Any) -> list[dict[str, Any]]:
    """The link as it is planned by the settings, or with some `changes`; nothing where not all is known."""
    facts = [host.get("ansible_facts") or {} for host in members]
    nodes = [found.get("twinserve_node") for found in facts]
    settings = [found.get("twinserve_settings") for found in facts]
    if not all(nodes) or not all(settings):
        return []
    try:
        return plan_fabric(
            [node for node in nodes if node],
            [str(host["inventory_hostname"]) for host in members],
            [{**own, **changes} for own in settings if own],
            [management_address(host) for host in members],
        )
    except AnsibleFilterError:
        return []  # the network of a node cannot be read: its own findings say so


def gpu_memory_routes(hosts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The rails over which RDMA into the GPUs' memory can be measured now: `ends` by rank, perhaps none.

    All that there are, also when fewer are used. `notes` say what keeps others from it.
    """
    members = list(hosts)
    facts = [host.get("ansible_facts") or {} for host in members]
    nodes = [found.get("twinserve_node") or {} for found in facts]
    releases = [found.get("twinserve_release") or {} for found in facts]
    none: dict[str, Any] = {"ends": [[] for _ in members], "notes": []}
    if not all(one.get("gpu_memory_rdma") for one in releases) or any(map(services.pair_started, nodes)):
        return none
    if not (plans := _plans(members, rails="auto")):
        return none
    names = [str(host["inventory_hostname"]) for host in members]
    if without := bandwidth_plan.lacking(nodes, names, gpu_memory=True):
        return none | {"notes": [without]}
    ends, notes = bandwidth_plan.routes(plans, rail_verdict.to_prove(plans, nodes))
    return {"ends": ends, "notes": notes}


def _gpu_memory(members: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """What measuring said, or why it could not be done."""
    told = list(gpu_memory_routes(members)["notes"])
    # Of a run that another one has refused each node would say so.
    told += [str(host["__operate_unmeasured"]) for host in members if "__operate_unmeasured" in host][:1]
    for host in members:
        rails = (host.get("__operate_proof") or {}).get("rails") or []
        told += [f"{host['inventory_hostname']}: {rail['problem']}" for rail in rails if rail["problem"]]
    measured = [
        host["__operate_measured"] for host in members if "runs" in host.get("__operate_measured", {})
    ]
    if members and len(measured) == len(members):
        names = [str(host["inventory_hostname"]) for host in members]
        heard = [host["__operate_listening"] for host in members]
        told += bandwidth_judge.report(measured, names, heard)["warnings"]
    yield from (Finding(findings.WARNING, "", f"link: {text}") for text in dict.fromkeys(told))


class FilterModule:
    """Names as used in YAML."""

    def filters(self) -> dict[str, Any]:
        """Map each name to its function."""
        return {
            "engine_signs": engine_signs,
            "doctor_findings": doctor_findings,
            "doctor_screen": findings.screen,
            "gpu_memory_routes": gpu_memory_routes,
        }
