"""Our systemd units on this node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .shell import run

_UNITS = ("twinserve.service", "twinserve-rank.service")
GATEWAY = "twinserve-gateway.service"


def parse_show(text: str) -> list[dict[str, str]]:
    """Blocks of `Key=value`, one a unit, as `systemctl show A B` prints them."""
    blocks = [block for block in text.split("\n\n") if block.strip()]
    return [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in blocks]


def read_services() -> dict[str, dict[str, str]]:
    """State of our units by name, with the gateway's; one that is not there is `inactive`."""
    properties = "Id,LoadState,ActiveState,SubState,UnitFileState,StatusText,NeedDaemonReload"
    shown = parse_show(run(["systemctl", "show", *_UNITS, GATEWAY, "--property", properties]))
    return {one["Id"]: one for one in shown if "Id" in one}


def read_journal(unit: str, lines: int = 80) -> list[str]:
    """The last lines that a unit has written since its present or latest start."""
    shown = parse_show(run(["systemctl", "show", unit, "--property", "InvocationID"]))
    start = shown[0].get("InvocationID") if shown else ""
    only = [f"_SYSTEMD_INVOCATION_ID={start}"] if start else []
    argv = ["journalctl", "--no-pager", "--quiet", "--output", "cat", "--lines", str(lines)]
    return run([*argv, f"_SYSTEMD_UNIT={unit}", *only]).splitlines()


def is_active(unit: Mapping[str, str]) -> bool:
    """Whether a unit runs, comes up or reloads, by what `systemctl show` says of it."""
    return unit.get("ActiveState") in ("active", "activating", "reloading")


def node_runs(node: Mapping[str, Any], unit: str) -> bool:
    """Whether that unit is active on the node of this probe."""
    return is_active((node.get("services") or {}).get(unit, {}))


def pair_started(node: Mapping[str, Any]) -> bool:
    """Whether the supervisor or a rank runs on the node of this probe."""
    return any(node_runs(node, unit) for unit in _UNITS)
