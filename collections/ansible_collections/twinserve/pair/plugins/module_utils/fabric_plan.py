"""Which addresses the rails of a pair need: pure, from the probes of all nodes.

A port that already shares a subnet with the port it faces keeps its address, whoever configured it. What is
missing is written by the service that has the port: networkd by a netplan file of ours, NetworkManager by a
profile of ours for each port.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .fabric_address import Given, settle
from .fabric_facing import (
    apart,
    choose_rails,
    dark_twins,
    told_closed,
    told_ways,
    usable_ports,
    worth_looking,
)
from .fabric_ports import NETPLAN_FILE, Port, Rail
from .fabric_wish import FabricError, Pair, Unfit, Wish
from .fabric_words import NEXT, fleeting, found_end, lacking, losing, no_carrier, not_used, over_the_lan
from .link import summarize
from .neighbours import is_link_local

__all__ = ["NETPLAN_FILE", "FabricError", "Plan", "Wish", "plan_all", "render_netplan"]


@dataclass
class Plan:
    """What this node's fabric needs. `ports` are all rails' ports of this node, main rail first.

    `netplan` is the content that our file shall have, `profiles` are those that NetworkManager shall have
    (netdev, address with prefix length, mtu in bytes, perhaps `more` addresses); None and empty where nothing
    is to be written.
    `apart` are devices that lead to a network by which the node is reached, and are no rails.
    `waiting` are the ends (hca, address) of rails that are left out only while a rank runs.
    `found` are sentences on what was found and who made it; they, summary and warnings are the pair's.
    """

    bring_up: list[str] = field(default_factory=list)
    ports: list[dict[str, Any]] = field(default_factory=list)
    netplan: str | None = None
    profiles: list[dict[str, Any]] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)
    waiting: list[dict[str, str]] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    summary: str = ""
    warnings: list[str] = field(default_factory=list)
    error: str = ""


@dataclass(frozen=True)
class _Settled:
    """Rails that can be used, with what each end shall have; why others cannot, and those that wait."""

    rails: list[Rail]
    given: list[list[Given]]
    unfit: list[str]
    waiting: list[tuple[Rail, list[Given]]]


def plan_all(
    nodes: Sequence[dict[str, Any]], names: Sequence[str], wish: Wish, management: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """One plan a node, by rank. An error belongs to the pair, so every node's plan carries it.

    `management` are the addresses (or names) by which the nodes are reached from outside, by rank.
    """
    try:
        return [asdict(plan) for plan in _plan(Pair(nodes, names, wish, management))]
    except FabricError as error:
        return [asdict(Plan(error=str(error))) for _ in nodes]


def _plan(pair: Pair) -> list[Plan]:
    every = usable_ports(pair)
    down = [] if pair.wish.only_checks else worth_looking(every, pair)
    if any(down):
        text = "RDMA ports are down: they are set up first, to see which are cabled"
        return [Plan(bring_up=ports, summary=text) for ports in down]
    settled = _settle_all(choose_rails(every, pair), pair)
    if pair.wish.limit > 1 and (twins := dark_twins(settled.rails, every)):
        settled.unfit.append(f"{not_used(1, twins)}: {no_carrier(twins, pair)}")
    plans = [_node_plan(rank, settled, pair) for rank in range(len(pair.names))]
    for plan, devices in zip(plans, apart(every, pair), strict=True):
        plan.apart = devices
        plan.summary = summarize([[port.hca for port in rail] for rail in settled.rails])
        plan.warnings = [*settled.unfit, *_warnings(settled, pair)]
        told = [*_found(settled, pair), *told_ways(every, settled.rails, pair), *told_closed(every, pair)]
        plan.found = list(dict.fromkeys(told))
    return plans


def _settle_all(rails: Sequence[Rail], pair: Pair) -> _Settled:
    """The main rail must work; a second one that cannot is left out, unless two were asked for.

    One that waits is left out in any case: that the pair serves is no fault.
    """
    settled = _Settled([], [], [], [])
    for number, rail in enumerate(rails):
        try:
            given = settle(number, rails, pair)
        except Unfit as reason:
            why = f"{reason}; {pair.wish.hint}"
            if number == 0:
                raise FabricError(why) from reason
            if pair.wish.rails == "2":
                raise FabricError(f"rails is 2, but only {number} can be used: {why}") from reason
            settled.unfit.append(f"{not_used(number, rail)}: {why}")
        else:
            if pair.serving and not all(own.kept for own in given):
                _put_off(number, rail, given, settled, pair)
                continue
            settled.rails.append(rail)
            settled.given.append(given)
    return settled


def _put_off(number: int, rail: Rail, given: list[Given], settled: _Settled, pair: Pair) -> None:
    """Nothing is written under a running rank: what runs over a port ends when the port is set anew."""
    why = lacking(rail, [(own.address, own.mtu) for own in given], pair.names)
    if number == 0:
        raise FabricError(f"rail 0: {why}")
    settled.unfit.append(f"{not_used(number, rail)}: {why}")
    settled.waiting.append((rail, given))


def _node_plan(rank: int, settled: _Settled, pair: Pair) -> Plan:
    plan = Plan()
    for rail, given in settled.waiting:
        plan.waiting.append({"hca": rail[rank].hca, "address": given[rank].address})
    in_file = []
    for number, (rail, given) in enumerate(zip(settled.rails, settled.given, strict=True)):
        port, own = rail[rank], given[rank]
        others = [one.address.split("/")[0] for peer, one in enumerate(given) if peer != rank]
        entry = {"rail": number, "netdev": port.netdev, "hca": port.hca, "service": port.maker.service}
        plan.ports.append(entry | asdict(own) | {"peers": others})
        if not own.kept and port.maker.service is None:
            raise FabricError(_no_service(rank, port, own, pair))
        if port.maker.service == "NetworkManager":
            if not own.kept:
                profile = {"netdev": port.netdev, "address": own.address, "mtu": own.mtu}
                plan.profiles.append(profile | ({"more": list(own.more)} if own.more else {}))
        elif port.ours or not own.kept:
            in_file.append((port, own))
    if any(not own.kept for _, own in in_file):
        plan.netplan = render_netplan({port.netdev: own for port, own in in_file})
    return plan


def _no_service(rank: int, port: Port, own: Given, pair: Pair) -> str:
    """Nobody would give the port its address again after a reboot."""
    makers = pair.nodes[rank]["network"]["makers"].values()
    if any(made["service"] == "NetworkManager" for made in makers):
        why = f"NetworkManager leaves {port.netdev} alone (unmanaged), and systemd-networkd does not run"
    else:
        why = "neither systemd-networkd nor NetworkManager runs"
    return (
        f"{pair.names[rank]}: {why}, so nobody can give {port.netdev} {own.address}: "
        "systemctl enable --now systemd-networkd, or set the port up yourself"
    )


def _warnings(settled: _Settled, pair: Pair) -> Iterable[str]:
    for number, (rail, given) in enumerate(zip(settled.rails, settled.given, strict=True)):
        if any(is_link_local(own.address) for own in given):
            yield f"rail {number} uses a link-local address that changes at reboot"
        if pair.serving and all(port.ours for port in rail) and given[0].mtu != pair.wish.mtu:
            yield (
                f"rail {number} keeps MTU {given[0].mtu} while the pair serves: {NEXT} "
                f"give it fabric_mtu {pair.wish.mtu}"
            )
        for name, port, own in zip(pair.names, rail, given, strict=True):
            if not own.kept and (lost := port.loses((own.address, *own.more))):
                yield losing(name, port, lost)
            waits = pair.serving and (pair.wish.mends or port.ours)
            cure = f"{NEXT} make it last" if waits else "fabric_manage: true makes it last"
            if own.kept and (text := fleeting(name, port, own.address, cure)):
                yield text


def _found(settled: _Settled, pair: Pair) -> Iterable[str]:
    """What is there, by rail and rank; and which way the workers are reached where that is no rail."""
    for rail, given in zip(settled.rails, settled.given, strict=True):
        if any(port.addresses for port in rail):
            yield from (found_end(rank, port, given[rank].address) for rank, port in enumerate(rail))
    for rank in range(1, len(pair.names)):
        named = [peer for setter, peer in enumerate(pair.wish.peers) if setter != rank]
        for reached in [pair.of(rank, pair.management), *named]:
            if reached and (text := over_the_lan(pair, reached, rank, settled.given[0][rank].address)):
                yield text


def render_netplan(ports: dict[str, Given]) -> str:
    """Our netplan file. The renderer is named for each port, so that no other port changes hands."""
    lines = [
        "# Written by Twinserve (role fabric). Other files in this folder are left alone.",
        "network:",
        "  version: 2",
        "  ethernets:",
    ]
    for netdev, own in sorted(ports.items()):
        lines += [
            f"    {netdev}:",
            "      renderer: networkd",
            "      dhcp4: false",
            "      link-local: []",
            f"      mtu: {own.mtu}",
            f"      addresses: [{', '.join([own.address, *own.more])}]",
        ]
    return "\n".join(lines) + "\n"
