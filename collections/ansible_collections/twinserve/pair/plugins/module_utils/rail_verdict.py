"""What the proofs of all nodes together say about the rails: pure. Only the second rail may fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .link import summarize

Proof = Mapping[str, Any]


@dataclass
class Verdict:
    """`error` refuses the link. `lines` are for people: a line a rail, then warnings.

    `dropped` has, by rank, the RDMA devices of rails that did not pass and are not used.
    """

    error: str = ""
    lines: list[str] = field(default_factory=list)
    dropped: list[list[str]] = field(default_factory=list)


def to_prove(
    plans: Sequence[Mapping[str, Any]], nodes: Sequence[Mapping[str, Any]]
) -> list[list[dict[str, Any]]]:
    """By rank, the ends of all rails with what their proof must know of the others' ends.

    `macs` are the peers' ports by address; `shares_subnet` is true when a node of the rail has a second port
    in the rail's subnet, so that it answers pings through either.
    """
    devices = [{one["hca"]: one for one in node["devices"]} for node in nodes]
    ends = [[devices[rank].get(port["hca"], {}) for port in plan["ports"]] for rank, plan in enumerate(plans)]
    wanted = []
    for rank, plan in enumerate(plans):
        rails = []
        for number, port in enumerate(plan["ports"]):
            others = [peer for peer in range(len(plans)) if peer != rank]
            macs = {
                _plain(plans[peer]["ports"][number]["address"]): ends[peer][number].get("mac", "")
                for peer in others
            }
            shared = any(side[number].get("shares_subnet", False) for side in ends)
            rails.append({**port, "macs": macs, "shares_subnet": shared})
        wanted.append(rails)
    return wanted


def judge(proofs: Sequence[Sequence[Proof]], names: Sequence[str], wanted: str | int) -> dict[str, Any]:
    """The verdict on proofs by rank, each with that rank's ends of all rails; `wanted`: setting rails."""
    verdict = Verdict(dropped=[[] for _ in proofs])
    rails = list(zip(*proofs, strict=True))
    good = [rail for rail in rails if not _problems(rail, names)]
    for number, rail in enumerate(rails):
        problems = _problems(rail, names)
        if not problems:
            verdict.lines.append(_line(rail))
        elif number == 0:
            verdict.error = (
                f"{_ends(rail)} does not reach the peer: {'; '.join(problems)}{_next_step(rail, names)}"
            )
        elif str(wanted) == "auto":
            verdict.lines += [f"warn {_not_used(rail)}", *problems]
            for rank, end in enumerate(rail):
                verdict.dropped[rank].append(end["hca"])
        elif not verdict.error:
            verdict.error = (
                f"rails is {wanted}, but only {len(good)} can be used: {_not_used(rail)} "
                f"({'; '.join(problems)}){_next_step(rail, names)}, or use rails: auto"
            )
    verdict.lines += [f"warn {text}" for rail in rails for text in _warnings(rail, names)]
    return asdict(verdict)


def used(
    plans: Sequence[Mapping[str, Any]], hosts: Sequence[Mapping[str, Any]], wanted: str | int
) -> list[dict[str, Any]]:
    """The plans without rails that did not pass their proof: that of this run, else that of the last.

    `hosts` are the nodes' variables. Where two rails were asked for nothing is dropped: it would be refused.
    """
    gone = [_dropped(host) if str(wanted) == "auto" else [] for host in hosts]
    rails = list(zip(*(plan["ports"] for plan in plans), strict=True))
    kept = [
        rail
        for number, rail in enumerate(rails)
        if number == 0 or not any(end["hca"] in gone[rank] for rank, end in enumerate(rail))
    ]
    if len(kept) == len(rails):
        return [{**plan, "dropped": []} for plan in plans]
    return [
        {
            **plan,
            "ports": [rail[rank] for rail in kept],
            "dropped": [rail[rank]["hca"] for rail in rails if rail not in kept],
            "summary": summarize([[end["hca"] for end in rail] for rail in kept]),
        }
        for rank, plan in enumerate(plans)
    ]


def _dropped(host: Mapping[str, Any]) -> Sequence[str]:
    """What this run's proof found, or what the last one did, as the rank's plan on the node tells."""
    if "__fabric_dropped_rails" in host:
        return list(host["__fabric_dropped_rails"])
    node = (host.get("ansible_facts") or {}).get("twinserve_node") or {}
    return list((node.get("rank_plan") or {}).get("dropped_rails") or [])


def _problems(rail: Sequence[Proof], names: Sequence[str]) -> list[str]:
    return [f"{name}: {end['problem']}" for name, end in zip(names, rail, strict=True) if end["problem"]]


def _warnings(rail: Sequence[Proof], names: Sequence[str]) -> list[str]:
    return [
        f"{name} rail {end['rail']} {text}"
        for name, end in zip(names, rail, strict=True)
        for text in end["warnings"]
    ]


def _ends(rail: Sequence[Proof]) -> str:
    shown = [f"{end['hca']} ({_plain(end['address']) or '-'}, MTU {_mtu(end)})" for end in rail]
    return f"rail {rail[0]['rail']} {' <-> '.join(shown)}"


def _not_used(rail: Sequence[Proof]) -> str:
    return f"{_ends(rail)} does not reach the peer: not used"


def _line(rail: Sequence[Proof]) -> str:
    """`rail 0 rocep1s0f0 <-> rocep1s0f0: 200 Gb/s, MTU 9000, GIDs 3 and 5, 8972 bytes both ways`."""
    speeds = [end["measured"]["speed"] for end in rail]
    speed = "speed unknown" if None in speeds else f"{_both([f'{one:g}' for one in speeds])} Gb/s"
    indexes = [str(end["gid_index"]) for end in rail]
    gids = f"GID {indexes[0]}" if len(set(indexes)) == 1 else f"GIDs {_both(indexes)}"
    devices = " <-> ".join(end["hca"] for end in rail)
    mtus = _both([str(_mtu(end)) for end in rail])
    sent = _both([end["measured"]["sent"] for end in rail])
    return f"rail {rail[0]['rail']} {devices}: {speed}, MTU {mtus}, {gids}, {sent} both ways"


def _next_step(rail: Sequence[Proof], names: Sequence[str]) -> str:
    """What to do. Where packets are lost, the command that shows it."""
    for name, end in zip(names, rail, strict=True):
        lost = [one for one in end["measured"]["reached"] if not one["ok"]]
        if lost and not end["shares_subnet"]:
            command = f"ping -M do -s {end['mtu'] - 28} -I {end['netdev']} {lost[0]['target']}"
            look = f"Look at the cable and at the MTU of both ports ({command} on {name})"
            return f". {look}, then run playbooks/fabric.yml"
    return ". Mend that, then run playbooks/fabric.yml"


def _mtu(end: Proof) -> int:
    return int(end["measured"]["mtu"] or end["mtu"])


def _both(values: Sequence[str]) -> str:
    """One value when all ends have the same, else all: `3 and 5`."""
    if len(set(values)) == 1:
        return values[0]
    return f"{', '.join(values[:-1])} and {values[-1]}"


def _plain(address: str) -> str:
    return address.partition("/")[0]
