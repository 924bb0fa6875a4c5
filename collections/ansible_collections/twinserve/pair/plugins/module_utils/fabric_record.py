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
    """Record ports that are about to be changed, as they are now; one that is ours stays as recorded.

    One that is not ours may have been set up by its owner since: a run of ours was refused, or taken back.
    """
    record, now = load(), port_state.read(netdevs)
    if record is None:
        record = without_us(now) if left_over() else now
    new = [netdev for netdev in now["ports"] if not _still(netdev, record, now)]
    for part in ("ports", "profiles"):
        record[part] = dict(sorted({**record[part], **{one: now[part][one] for one in new}}.items()))
    _write(record)


def unclaimed(record: dict[str, Any]) -> dict[str, Any]:
    """Of a record only what there is to put back: without ports that their owner has set up since."""
    now = port_state.read(record["ports"])
    kept = [netdev for netdev in now["ports"] if _still(netdev, record, now)]
    return record | {part: {one: record[part][one] for one in kept} for part in ("ports", "profiles")}


def _still(netdev: str, record: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether the record says what the port was like before us: it is ours, or as bare as it was."""
    if netdev not in record["ports"]:
        return False
    is_ours = netdev in netplan_file.ports_of(now["netplan"]) or now["profiles"][netdev] is not None
    return is_ours or all(port_state.is_bare(side["ports"][netdev]) for side in (record, now))


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
