"""What clean.yml shows and asks: pure, from the lists of the nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .cleaning import ASKED

_YES = ("yes", "true", "1", "y", "on")


def screen(hosts: Iterable[Mapping[str, Any]], report: Mapping[str, Any]) -> str:
    """What there is on each node of the pair of `report`."""
    listed = _listed(hosts, "__operate_listed")
    lines: list[str] = []
    for name in (rank["name"] for rank in report["ranks"]):
        if name not in listed:
            lines.append(f"{name}: not looked at, so it keeps all")
        elif not listed[name]:
            lines.append(f"{name}: nothing is left of Twinserve")
        else:
            lines += [f"{name}:", *(f"  {line}" for line in _lines(listed[name]))]
    return "\n".join(lines)


def running(hosts: Iterable[Mapping[str, Any]], report: Mapping[str, Any]) -> list[str]:
    """What runs on the nodes of the pair of `report`, so that nothing of any of them may go."""
    told = {str(host["inventory_hostname"]): host.get("__operate_listed") or {} for host in hosts}
    names = [rank["name"] for rank in report["ranks"]]
    return [f"{name}: {told[name]['running']}" for name in names if told.get(name, {}).get("running")]


def questions(hosts: Iterable[Mapping[str, Any]], given: Mapping[str, Any]) -> list[str]:
    """Kinds of things to ask about: those that are there, and of which nobody has said anything."""
    every = [item for items in _listed(hosts, "__operate_listed").values() for item in items]
    there = {item["kind"] for item in every if not item.get("stays")}
    return [kind for kind in ASKED if kind in there and given.get(kind) is None]


def choice(answers: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, bool]:
    """Which kinds go, by what was said before and what was answered; nothing said keeps them."""
    said = {one.get("__operate_kind"): one.get("user_input") for one in answers.get("results") or []}
    return {kind: _yes(said.get(kind) if given.get(kind) is None else given[kind]) for kind in ASKED}


def rest(hosts: Iterable[Mapping[str, Any]], report: Mapping[str, Any]) -> str:
    """What stays on each node of the pair of `report`."""
    cleaned = _listed(hosts, "__operate_cleaned")
    lines = []
    for name in (rank["name"] for rank in report["ranks"] if rank["name"] in cleaned):
        kept = [item for item in cleaned[name] if not item["goes"]]
        lines += [f"{name} keeps:", *(f"  {line}" for line in _lines(kept))] if kept else []
    return "\n".join([*lines, "packages stay: others may have come to need them"])


def _listed(hosts: Iterable[Mapping[str, Any]], key: str) -> dict[str, Sequence[Mapping[str, Any]]]:
    return {
        str(host["inventory_hostname"]): host[key]["items"]
        for host in hosts
        if "items" in (host.get(key) or {})
    }


def _lines(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for item in items:
        size = f" ({item['size'] / 1e9:.1f} GB)" if item["kind"] in ASKED else ""
        stays = f": stays, {item['stays']}" if item.get("stays") else ""
        yield f"{item['kind']:9} {item['name']}{size}{stays}"


def _yes(value: Any) -> bool:
    return str(value).strip().lower() in _YES
