"""Put the link of this node back as it was before us, guarded like any other change of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import fabric_record, guard, netplan_file, netplan_merge, nm_profiles, port_state, restore, way_back
from .confirming import ApplyError, Outcome
from .guard import Change
from .shell import CommandError, CommandTimeout, run

# Seconds until the ports are as they were.
_BACK = 5


def absent(check: bool) -> Outcome:
    """Compare with the record, then predict or restore. Raises ApplyError, all as it was, when it cannot."""
    record = _record()
    if record is None:
        return Outcome()
    now = port_state.read(record["ports"])
    changes = bool(restore.same(record, now)) or now["profiles"] != record["profiles"]
    outcome = Outcome(True, port_state.text(now), port_state.text(record), armed=changes and not check)
    if changes and now["netplan"] != record["netplan"]:
        own = {*record["ports"], *netplan_file.ports_of(now["netplan"])}
        netplan_merge.check(record["netplan"], own, [])
    if check:
        return outcome
    if changes:
        guard.guarded(_change(record, now))
    else:
        finish()
    return outcome


def confirmed(about: Mapping[str, Any]) -> None:
    """What waits for a change of the link to be kept."""
    if about["kind"] == "absent":
        finish()


def finish() -> None:
    """Profiles that wait for the confirmation, and the record, are removed."""
    record = fabric_record.load() or {"profiles": {}}
    for netdev in nm_profiles.ours() if nm_profiles.is_running() else []:
        if record["profiles"].get(netdev) is None:
            nm_profiles.delete(netdev)
    fabric_record.remove()


def _record() -> dict[str, Any] | None:
    """What to go back to. What an earlier version of ours left without a record is at least removed."""
    if record := fabric_record.load():
        return fabric_record.unclaimed(record)
    mine = nm_profiles.ours() if nm_profiles.is_running() else []
    if not (fabric_record.left_over() or mine):
        return None
    ports = netplan_file.ports_of(netplan_file.read())
    return fabric_record.without_us(port_state.read({*ports, *mine}))


def _change(record: dict[str, Any], now: dict[str, Any]) -> Change:
    return Change(
        netdevs=set(record["ports"]),
        before=now,
        after=record,
        apply=lambda: _restore(record, now),
        check=lambda: _refuse_different(record),
        undone="the link is as Twinserve had set it up",
        about={"kind": "absent", "ports": []},
    )


def _restore(record: dict[str, Any], now: dict[str, Any]) -> None:
    """Each step alone: one that finds nothing to do must not keep the others from it. The check judges."""
    saved = fabric_record.keep(record["netplan"], way_back.folder(guard.NAME) / "netplan-wanted")
    left = guard.budget()
    for command in restore.commands(record, now, saved):
        try:
            run(command, timeout=left())
        except CommandTimeout:
            raise
        except CommandError:
            continue


def _refuse_different(record: dict[str, Any]) -> None:
    def lacks() -> list[str]:
        return restore.same(record, port_state.read(record["ports"]))

    try:
        guard.wait(lambda: not lacks(), _BACK, "")
    except ApplyError:
        raise ApplyError(f"the link could not be put back as it was: {'; '.join(lacks())}") from None
