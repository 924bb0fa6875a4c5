"""Filters that plan from what the nodes said: thin names for pure functions of `module_utils`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.twinserve.pair.plugins.module_utils import (
    bandwidth_judge,
    bandwidth_plan,
    fabric_due,
    fabric_plan,
    firewall_plan,
    good_choice,
    gpu_choice,
    hf_cache,
    image_load,
    image_need,
    image_recipe,
    image_source,
    image_stream,
    images,
    machines,
    model_copy,
    model_need,
    model_transfer,
    node_faults,
    private_folders,
    rail_verdict,
    serve_change,
    services,
    shared_weights,
    ssh_wire,
)
from ansible_collections.twinserve.pair.plugins.module_utils.gids import find_v2
from ansible_collections.twinserve.pair.plugins.module_utils.shell import last_line
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device


def plan_fabric(
    nodes: Sequence[dict[str, Any]],
    names: Sequence[str],
    settings: Sequence[Mapping[str, Any]],
    management: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """One plan a node, by rank, from probes and settings of all nodes of the pair, by rank.

    `management` are the addresses by which they are reached from outside: those ports are rails only where
    there are no others. All who ask for plans of a pair must say them.
    """
    missing = [name for name, node in zip(names, nodes, strict=True) if not node.get("network")]
    if missing:
        raise AnsibleFilterError(
            f"{', '.join(missing)}: the network could not be read (is iproute2 installed?)"
        )
    wish = fabric_plan.Wish(
        rails=str(settings[0]["rails"]),
        manage=settings[0]["fabric_manage"],
        netdevs=tuple(own["fabric_netdev"] for own in settings),
        peers=tuple(own["fabric_peer"] for own in settings),
        hcas=tuple(own["nccl_ib_hca"] for own in settings),
        mtu=settings[0]["fabric_mtu"],
        subnets=tuple(settings[0]["fabric_subnets"]),
    )
    return fabric_plan.plan_all(nodes, names, wish, list(management))


def plan_wire(
    nodes: Sequence[Mapping[str, Any]],
    aliases: Iterable[Sequence[str]],
    plans: Sequence[Mapping[str, Any]],
    rotate: bool = False,
) -> list[dict[str, Any]]:
    """One entry a node, by rank: key files and known hosts of the head, lines of the workers."""
    try:
        return ssh_wire.plan(nodes, list(aliases), plans, rotate)
    except ssh_wire.NoHostKey as error:
        raise AnsibleFilterError(str(error)) from error


def serving(node: Mapping[str, Any]) -> bool:
    """Whether a rank runs on the node now."""
    return node_faults.rank_runs(node)


def rank_inputs(
    nodes: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    addresses: Sequence[str],
    settings: Sequence[Mapping[str, Any]],
    plans: Sequence[Mapping[str, Any]],
    release: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """What rendering the ranks needs of each node: where things are, the one GPU that `release` is for, and
    the link that is expected.
    """
    # The supervisor finds the link by itself at each start; a named peer stands for the ports found for it.
    named = any(own["fabric_peer"] for own in settings)
    return [
        {
            "name": name,
            "hf_cache": node["hf"]["home"],
            "kernel_cache": node["kernel_cache"],
            "image": image,
            "gpu_uuid": gpu_choice.choose(node, own, release or {}).uuid,
            "address": address,
            "nccl_ib_hca": _selector(own["nccl_ib_hca"], plan.get("apart") or []),
            "fabric_netdev": link[0]["netdev"] if named and link else own["fabric_netdev"],
            "expected_link": link,
            "dropped_rails": plan.get("dropped", []),
        }
        for node, name, address, own, plan, image in zip(
            nodes, names, addresses, settings, plans, images.matching(nodes), strict=True
        )
        for link in [_expected_link(plan, node)]
    ]


def _selector(given: str | None, apart: Sequence[str]) -> str | None:
    """What a start chooses from: what is set, without the network by which the node is reached."""
    # Where devices are listed none is apart, so what is set can only exclude more.
    return f"{given or '^'}{',' if given else ''}{','.join(apart)}" if apart else given


def _expected_link(plan: Mapping[str, Any], node: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rails' ends as planned. What was expected before stays so for rails that wait, and where none is
    planned: a start then waits for them a little, and tells what they lost.
    """
    before = list((node.get("rank_plan") or {}).get("expected_link") or [])
    if not plan["ports"]:
        return before
    waiting = [end["hca"] for end in plan.get("waiting") or []]
    planned = [_expected(port, node["devices"]) for port in plan["ports"]]
    return [*planned, *(end for end in before if end["hca"] in waiting)]


def _expected(port: Mapping[str, Any], devices: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A port as it is when the rank is rendered; each start looks again, and tells what moved since."""
    address = port["address"].split("/")[0]
    tables = [Device.from_json(device).gids for device in devices if device["hca"] == port["hca"]]
    found = find_v2(tables[0], address) if tables and address else None
    index = found.index if found else None
    return {"netdev": port["netdev"], "hca": port["hca"], "address": address, "gid_index": index}


def plan_firewall(
    nodes: Sequence[Mapping[str, Any]],
    settings: Sequence[Mapping[str, Any]],
    plans: Sequence[Mapping[str, Any]],
    ssh_ports: Sequence[int],
    unit: str,
) -> list[dict[str, Any]]:
    """One plan of the firewall a node, by rank; `plans` are those of the link."""
    links = [_expected_link(plan, node) for plan, node in zip(plans, nodes, strict=True)]
    return firewall_plan.plan(nodes, settings, links, list(ssh_ports), unit)


def nodes_by_name(hosts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The probes of those hosts that could be looked at."""
    facts = {str(host["inventory_hostname"]): host.get("ansible_facts") or {} for host in hosts}
    return {name: seen["twinserve_node"] for name, seen in facts.items() if "twinserve_node" in seen}


def plan_change(
    node: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
    head: Mapping[str, Any],
    config: Mapping[str, Any],
    runtime: str,
    restart: bool,
) -> dict[str, Any]:
    """What has to happen to a node so that the pair serves `config`, of which `files` are its part."""
    return serve_change.plan(
        node, files, head, config["digest"], runtime, restart, good_choice.good_id(config)
    )


class FilterModule:
    """Names as used in YAML."""

    def filters(self) -> dict[str, Any]:
        """Map each name to its function."""
        return {
            "fabric_plan": plan_fabric,
            "fabric_due": fabric_due.due,
            "firewall_plan": plan_firewall,
            "serving": serving,
            "started": services.pair_started,
            "rails_to_prove": rail_verdict.to_prove,
            "rail_verdict": rail_verdict.judge,
            "used_rails": rail_verdict.used,
            "bandwidth_refusal": bandwidth_plan.refusal,
            "bandwidth_lacking": bandwidth_plan.lacking,
            "bandwidth_schedule": bandwidth_plan.schedule,
            "bandwidth_report": bandwidth_judge.report,
            "node_faults": node_faults.faults,
            "private_folders": private_folders.wanted,
            "what_comes": model_need.words,
            "node_warnings": node_faults.warnings,
            "machine": machines.machine,
            "machine_faults": machines.faults,
            "machine_warnings": machines.warnings,
            "ssh_wire": plan_wire,
            "ssh_logins": ssh_wire.logins,
            "last_line": last_line,
            "image_faults": images.image_faults,
            "gpu_choice": gpu_choice.chosen,
            "rank_images": images.matching,
            "travelling_name": image_source.travelling_name,
            "image_wanted": image_source.wanted,
            "load_argv": image_load.load_argv,
            "image_needs": image_need.needs,
            "image_names": image_source.names,
            "image_steps": image_source.steps,
            "stream_room_faults": image_stream.room_faults,
            "stream_argv": image_stream.stream_argv,
            "stream_meanings": image_stream.stream_meanings,
            "pull_meanings": image_stream.pull_meanings,
            "other_ways": image_stream.other_ways,
            "image_clones": image_recipe.clones,
            "image_files": image_recipe.files,
            "image_patches": image_recipe.patches,
            "image_build_argv": image_recipe.build_argv,
            "serve_change": plan_change,
            "good_id": good_choice.good_id,
            "last_good": good_choice.last_good,
            "good_before": good_choice.good_before,
            "missing_parts": serve_change.missing_parts,
            "rank_inputs": rank_inputs,
            "nodes_by_name": nodes_by_name,
            "cache_folder": hf_cache.folder_name,
            "snapshots": model_transfer.wanted,
            "weights_plan": shared_weights.plan,
            "rail_addresses": shared_weights.rail_addresses,
            "snapshot_checks": model_transfer.checks,
            "lacking_words": model_transfer.lacking_words,
            "missing_snapshots": model_transfer.missing,
            "download_argv": model_transfer.download_argv,
            "download_env": model_transfer.download_env,
            "download_meanings": model_transfer.download_meanings,
            "fetch_argv": model_transfer.fetch_argv,
            "verify_argv": model_transfer.verify_argv,
            "secret_file": model_transfer.secret_file,
            "source_words": model_transfer.source_words,
            "copy_job": model_copy.copy_job,
            "rail_ways": model_copy.rail_ways,
        }
