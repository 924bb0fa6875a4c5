"""What logs.yml shows of a pair: the end of each rank's log, and where the whole is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def screen(hosts: Iterable[Mapping[str, Any]], report: Mapping[str, Any], folder: str, check: bool) -> str:
    """The screen of the pair of `report`; `hosts` are variables of hosts, with what was gathered there."""
    gathered = {str(host["inventory_hostname"]): host.get("__operate_gathered") or {} for host in hosts}
    lines: list[str] = []
    for one in report["ranks"]:
        lines += _rank(one, gathered.get(one["name"], {}), folder, check)
    return "\n".join(lines)


def _rank(one: Mapping[str, Any], found: Mapping[str, Any], folder: str, check: bool) -> Iterator[str]:
    title = f"rank {one['rank']}"
    if "files" not in found:
        yield f"{title} ({one['name']}): nothing was gathered there"
        return
    yield from (f"{title} | {line}" for line in found["tail"] or ["no output"])
    starts = ", ".join(found["starts"]) or "none"
    count = len(found["files"])
    where = (
        f"would gather {count} files"
        if check
        else f"the whole is in {folder}/{one['name']}.tar.gz (files: {count})"
    )
    yield f"{title} ({one['name']}): {where}; earlier starts kept: {starts}"
