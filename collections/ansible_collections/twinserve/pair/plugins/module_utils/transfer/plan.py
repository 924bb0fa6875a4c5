"""The plan of one copy, as the playbook lays it down, and the files that it names."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..ssh_client import KEYS, KNOWN_HOSTS
from .dealing import File


class PlanError(ValueError):
    """The plan cannot be followed; the text says what is wrong with it."""


@dataclass(frozen=True)
class Way:
    """An address of the worker, and from which address and port of the head it is reached.

    `netdev` binds the connection to that port: where two rails share a subnet the address does not.
    """

    address: str
    port: int = 22
    source: str = ""
    netdev: str = ""


@dataclass(frozen=True)
class Plan:
    """What goes where. `lan` is used only when no rail answers; `streams` are for each rail, 0: as fit."""

    worker: str
    user: str
    source: Path
    target: str
    files: Path
    rails: tuple[Way, ...]
    lan: Way | None = None
    options: tuple[str, ...] = ()
    streams: int = 0
    key: str = f"{KEYS}/copy"
    known_hosts: str = KNOWN_HOSTS


@dataclass(frozen=True)
class Load:
    """Files to be sent: `payloads` over all rails, `last` (all links among them) in one pass at the end."""

    payloads: tuple[File, ...]
    last: tuple[str, ...]


def parse(text: str) -> Plan:
    """Read a plan. Raises PlanError."""
    try:
        given = json.loads(text)
        return Plan(
            worker=str(given["worker"]),
            user=str(given["user"]),
            source=Path(given["source"]),
            target=str(given["target"]),
            files=Path(given["files"]),
            rails=tuple(_way(one) for one in given["rails"]),
            lan=_way(given["lan"]) if given.get("lan") else None,
            options=tuple(str(one) for one in given.get("options") or ()),
            **{name: given[name] for name in ("streams", "key", "known_hosts") if name in given},
        )
    except (ValueError, KeyError, TypeError) as error:
        raise PlanError(f"the plan of the copy cannot be read: {error!r}; run the playbook again") from error


def load(plan: Plan) -> Load:
    """Sort the files of the plan's list. Raises PlanError for one that is not there."""
    names = plan.files.read_text(encoding="utf-8").splitlines()
    links = [name for name in names if (plan.source / name).is_symlink()]
    known, blobs = set(links), _blob_links(plan.source, links)
    try:
        files = [
            File(name, (plan.source / name).stat().st_size, tuple(blobs.get(name, ())))
            for name in names
            if name not in known
        ]
    except FileNotFoundError as error:
        raise PlanError(f"{error.filename} is gone since it was listed; run the playbook again") from error
    # All unfinished files lie in one folder, under their own names: two of one name would meet there.
    twice = _twice(Path(one.name).name for one in files)
    alone = [one for one in files if Path(one.name).name not in twice]
    last = [one.name for one in files if Path(one.name).name in twice]
    return Load(tuple(alone), (*last, *links))


def _blob_links(source: Path, links: Iterable[str]) -> dict[str, list[str]]:
    """By payload, the blobs that are links to it: each arrives with it, so that a second run knows it."""
    found: dict[str, list[str]] = {}
    for name in links:
        path = source / name
        if path.parent.name == "blobs":
            payload = os.path.relpath(path.parent / path.readlink(), source)
            found.setdefault(payload, []).append(name)
    return found


def _twice(names: Iterable[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}


def _way(given: Mapping[str, Any]) -> Way:
    return Way(
        address=str(given["address"]),
        port=int(given.get("port") or 22),
        source=str(given.get("source") or ""),
        netdev=str(given.get("netdev") or ""),
    )
