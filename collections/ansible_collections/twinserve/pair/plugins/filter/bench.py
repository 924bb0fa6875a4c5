"""Filters of the benchmark: what is measured, from where, and what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.twinserve.pair.plugins.module_utils.benchmark import install, plan, report

_SERVES = "serving"


def fault(
    head: Mapping[str, Any],
    settings: Mapping[str, Any],
    names: Mapping[str, str],
    known: Sequence[str],
    supervised: bool = True,
) -> str:
    """Why the pair cannot be measured so, empty when it can.

    `head` is the probe of its head; `names` are those of `head` and `host` (who asks), and the `management`
    address of the head; `known` are the hosts of the inventory.
    """
    if names["host"] not in known and names["host"] != "localhost":
        return f"bench_host is {names['host']!r}: it takes a host of the inventory, or localhost"
    try:
        _url(head, settings, names)
    except plan.NotPossible as error:
        return str(error)
    found, written = head.get("state") or {}, (head.get("pair_config") or {}).get("digest")
    state = found.get("state")
    if supervised and state != _SERVES:
        return f"the pair does not serve ({state or 'stopped'}): playbooks/status.yml says more"
    # A serve.yml that was cut before its restart leaves the older one at work.
    if supervised and (found.get("digest") or written) != written:
        return "the pair runs with other settings than are written: run serve.yml -e restart=true first"
    return ""


def tool_fault(found: Mapping[str, Any], name: str) -> str:
    """Why AIPerf cannot be installed on that machine, empty when it can, or is there."""
    version = found.get("python")
    if found.get("ready") or (version and install.supported(version)):
        return ""
    told = f"has {version}" if version else "has none by that name"
    return f"AIPerf needs Python 3.11 to 3.13, and {name} {told}: set bench_python to one that it has"


def memory_fault(found: Mapping[str, Any], name: str, ranks: Sequence[str]) -> str:
    """Why AIPerf must not run on that machine, empty when it may. A machine without a rank may spend all."""
    left, needed = float(found["available_gib"]), plan.MEMORY_GIB
    if name not in ranks or left >= needed:
        return ""
    return (
        f"{name} has {left:.1f} GiB of memory left, and AIPerf may take {needed}, at the cost of the "
        "rank: end what else runs there, or set bench_host to another machine"
    )


def make(
    nodes: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    release: Mapping[str, Any],
    names: Mapping[str, str],
    dataset: Mapping[str, Any] | None,
    version: str,
) -> dict[str, Any]:
    """The plan of the sweep, with all that its report will say of the pair; `nodes` are probes by rank."""
    url = _url(nodes[0], settings, names)
    made = plan.make(nodes[0]["pair_config"], settings, dataset, url, names["host"], version)
    told = report.about(made, release, nodes, settings["bench_note"])
    return {**made, "program": str(install.program(version)), "about": told}


def _url(head: Mapping[str, Any], settings: Mapping[str, Any], names: Mapping[str, str]) -> str:
    here = names["host"] == names["head"]
    return plan.address(head.get("pair_config"), here, settings["bench_url"], names["management"])


class FilterModule:
    """Names as used in YAML."""

    def filters(self) -> dict[str, Any]:
        """Map each name to its function."""
        return {
            "bench_fault": fault,
            "bench_tool_fault": tool_fault,
            "bench_memory_fault": memory_fault,
            "bench_plan": make,
            "bench_folder": plan.run_folder,
            "bench_words": plan.words,
            "bench_screen": report.screen,
        }
