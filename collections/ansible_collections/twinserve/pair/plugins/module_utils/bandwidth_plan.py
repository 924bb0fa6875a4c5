"""Who measures which rail to whom, and on which port: pure, from the proofs of all nodes by rank.

Every node sends to every other one over each rail alone, then over all rails at once. A server of
`ib_write_bw` takes one client and ends, so each measurement has a server, and a port, of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .bandwidth_parse import BUILD
from .services import node_runs

PROGRAM, PACKAGE = "ib_write_bw", "perftest"
FIRST_PORT = 18515
DURATION = 5
# Seconds that a measurement takes beside its duration: starting, connecting, ending, Ansible's own part.
_AROUND = 15
_RUNNING = {
    "twinserve-rank.service": "a rank runs",
    "twinserve.service": "the pair is being served or started",
}


def refusal(nodes: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Why the rails may not be measured now; empty when they may. It would take the link from a rank."""
    for name, node in zip(names, nodes, strict=True):
        for unit, what in _RUNNING.items():
            if node_runs(node, unit):
                return (
                    f"{name}: {what} ({unit}), and fabric_bandwidth_test would take its link: run "
                    "playbooks/stop.yml first, or leave fabric_bandwidth_test out"
                )
    return ""


def lacking(nodes: Sequence[Mapping[str, Any]], names: Sequence[str], gpu_memory: bool = False) -> str:
    """Why the rails cannot be measured; empty when every node has the program.

    That of the package measures no GPU memory, in which other data of the nodes' engine goes.
    """
    without = [name for name, node in zip(names, nodes, strict=True) if not node["tools"].get(PROGRAM, False)]
    if not without:
        return ""
    where = ", ".join(without)
    if gpu_memory:
        return f"the rails' bandwidth is not measured: {PROGRAM} is not installed on {where}: {BUILD}"
    return f"the rails' bandwidth is not measured: {PROGRAM} (package {PACKAGE}) is not installed on {where}"


def schedule(
    proofs: Sequence[Sequence[Mapping[str, Any]]], names: Sequence[str], memories: Sequence[str] = ("host",)
) -> list[dict[str, Any]]:
    """What each rank does: `servers` to keep ready for `limit` seconds, `clients` to run.

    `proofs` are each rank's rails as `rail_proof` returns them; only rails that came through everywhere are
    measured, out of each of `memories` (host, gpu). Clients of one `phase` run at once, phases one after the
    other.
    """
    rails = _proved(proofs)
    work: list[dict[str, Any]] = [{"servers": [], "clients": []} for _ in names]
    port, phase = FIRST_PORT, 0
    for sender, plan in enumerate(work):
        for receiver in (rank for rank in range(len(names)) if rank != sender):
            for memory in memories:
                for together in _phases(sorted(rails[sender])):
                    for rail in together:
                        near, far = rails[sender][rail], rails[receiver][rail]
                        shared = {"port": port, "rail": rail, "memory": memory}
                        work[receiver]["servers"].append(shared | _end(far))
                        target = {"peer": _plain(far["address"]), "to": names[receiver]}
                        group = {"phase": phase, "together": len(together) > 1}
                        plan["clients"].append(shared | _end(near) | target | group)
                        port += 1
                    phase += 1
    for plan in work:
        plan["limit"] = phase * (DURATION + _AROUND) + _AROUND
    return work


def routes(
    plans: Sequence[Mapping[str, Any]], wanted: Sequence[Sequence[Mapping[str, Any]]]
) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """Of the rails that `plans` have, the ends (of `wanted`, by rank) of those that need nothing any more.

    And what is to be said of the others: without addresses nothing can be measured.
    """
    ready, notes = [], []
    for number, ports in enumerate(zip(*(plan["ports"] for plan in plans), strict=True)):
        if all(port["kept"] for port in ports):
            ready.append(number)
            continue
        two = "-e rails=2 " if number else ""
        devices = " <-> ".join(port["hca"] for port in ports)
        notes.append(
            f"rail {number} ({devices}) is not set up, and so not measured: playbooks/fabric.yml {two}"
            "-e fabric_bandwidth_test=true does both"
        )
    return [[dict(ends[number]) for number in ready] for ends in wanted], notes


def _proved(proofs: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[int, Mapping[str, Any]]]:
    """Each rank's rails by number, without those that failed on any node."""
    good = [{rail["rail"]: rail for rail in rails if not rail["problem"]} for rails in proofs]
    shared = set.intersection(*(set(rails) for rails in good)) if good else set()
    return [{number: rails[number] for number in rails if number in shared} for rails in good]


def _phases(rails: Sequence[int]) -> list[list[int]]:
    """Each rail alone, then all at once."""
    alone = [[rail] for rail in rails]
    return [*alone, list(rails)] if len(rails) > 1 else alone


def _end(rail: Mapping[str, Any]) -> dict[str, Any]:
    return {"hca": rail["hca"], "netdev": rail["netdev"], "address": _plain(rail["address"])}


def _plain(address: str) -> str:
    return address.partition("/")[0]
