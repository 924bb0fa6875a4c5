"""What the link of this node was like before us, kept on the node so that all of it can be put back."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from . import netplan_file, port_state

FILE = Path("/var/lib/twinserve/fabric/before.json")
# How our own file begins: one that stands there without a record is of an earlier version of ours.
_OURS = "# Written by Twinserve"


def load() -> dict[str, Any] | None:
    """The record; None when nothing of ours was ever changed here, or all of it was put back."""
    if not FILE.is_file():
        return None
    record: dict[str, Any] = json.loads(FILE.read_text())
    return record


def ensure(netdevs: Collection[str]) -> None:
    """Add ports that are about to be changed for the first time, as they are now; what is recorded stays."""
    record = load()
    new = set(netdevs) - set(record["ports"] if record else ())
    if record and not new:
        return
    now = port_state.read(new)
    if record:
        for part in ("ports", "profiles"):
            record[part] = {**now[part], **record[part]}
    else:
        record = without_us(now) if left_over() else now
    _write(record)


def keep(content: str | None, path: Path) -> str:
    """Write what a netplan file held to `path`, mode 0600, for a later command to copy back."""
    if content is not None:
        path.touch(mode=0o600)
        path.write_text(content)
    return str(path)


def remove() -> None:
    """Forget it, with its folder when nothing else is kept there."""
    FILE.unlink(missing_ok=True)
    if FILE.parent.is_dir() and not any(FILE.parent.iterdir()):
        FILE.parent.rmdir()


def left_over() -> bool:
    """Whether our netplan file stands there without any record."""
    return load() is None and (netplan_file.read() or "").startswith(_OURS)


def without_us(state: dict[str, Any]) -> dict[str, Any]:
    """The best guess where nothing was recorded: the same ports without what we gave them."""
    mine = netplan_file.ports_of(netplan_file.read()) | {
        one for one, fields in state["profiles"].items() if fields
    }
    for netdev in mine & set(state["ports"]):
        state["ports"][netdev].update(addresses=[], routes=[], owner=None, uuid="", profile="", active=False)
    return {**state, "netplan": None, "profiles": dict.fromkeys(state["profiles"])}


def _write(record: dict[str, Any]) -> None:
    FILE.parent.mkdir(parents=True, exist_ok=True)
    staged = FILE.with_suffix(".new")
    staged.touch(mode=0o600)
    staged.write_text(json.dumps(record, indent=1) + "\n")
    staged.rename(FILE)
