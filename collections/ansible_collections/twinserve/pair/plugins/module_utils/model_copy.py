"""The job that copies a snapshot from the head to a worker, and its ways. Pure; `transfer` is what it runs.

It runs on the head with a key that can write below the worker's cache and do nothing else.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from .managed_files import RUNTIME
from .model_transfer import list_file


def copy_job(
    snapshot: Mapping[str, str],
    nodes: Sequence[Mapping[str, Any]],
    name: str,
    ways: Mapping[str, Any],
    options: Sequence[str],
    runtime: str,
) -> dict[str, Any]:
    """The job on the head that copies one snapshot to the worker `name`, and the plan that it reads.

    `nodes` are the probes of head and worker; `ways` has the `rails` (see `rail_ways`) and the worker's
    address on the `lan`; `runtime` is the version that has the program.
    """
    head, worker = nodes
    listed = list_file(snapshot["repo"], snapshot["revision"], name)
    plan = f"{listed}.json"
    return {
        "name": f"copy {name} {snapshot['repo']}",
        "what": snapshot["revision"],
        "title": f"copy of {snapshot['repo']}",
        "argv": ["/usr/bin/python3", "-P", "-m", "twinserve.transfer", plan],
        "env": {"PYTHONPATH": f"{RUNTIME}/{runtime}"},
        "plan_file": plan,
        "plan": {
            "worker": name,
            "user": worker["user"]["name"],
            "source": f"{head['hf']['home']}/hub",
            "target": "hub/",
            "files": listed,
            "rails": ways["rails"],
            "lan": {"address": ways["lan"]} if ways["lan"] else None,
            "options": list(options),
        },
    }


def rail_ways(head: Sequence[Mapping[str, Any]], worker: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """How each rail is reached, main first, from the fabric plan's ports of head and worker.

    A connection keeps to its rail by the head's address. Where a second rail shares the subnet of an earlier
    one, the kernel would send it through that one all the same, so it is bound to its port.
    """
    ways: list[dict[str, str]] = []
    seen = set()
    for own, peer in zip(head, worker, strict=True):
        if not own["address"] or not peer["address"]:
            continue  # in check mode a rail may have no address yet
        here = ipaddress.IPv4Interface(own["address"])
        ways.append(
            {
                "address": peer["address"].split("/")[0],
                "source": str(here.ip),
                "netdev": own["netdev"] if here.network in seen else "",
            }
        )
        seen.add(here.network)
    return ways
