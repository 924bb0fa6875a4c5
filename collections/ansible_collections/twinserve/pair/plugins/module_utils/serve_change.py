"""What has to happen to a node so that the pair serves what is configured: pure, from the probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .machines import is_remembered
from .managed_files import ETC, UNITS, differing, text_hash
from .node_faults import rank_runs
from .services import node_runs

PAIR = f"{ETC}/pair.json"


def plan(
    node: Mapping[str, Any],
    wanted: Sequence[Mapping[str, Any]],
    head: Mapping[str, Any],
    digest: str,
    runtime: str,
    restart: bool,
    good_id: str,
) -> dict[str, Any]:
    """What to do, by step; `needed` says whether there is anything to do or to say at all.

    `runtime`: install it. `stop` the pair first. `write` these files. `reload` systemd. `start` the pair.
    `refresh` the supervisor, which takes a new runtime and its own settings while the ranks run on: whenever
    it runs with others than those that are wanted, written by this run or by one that was interrupted.

    Units are not touched under a running rank: the daemon-reload they need takes the GPU from its container.
    They wait (`units_wait`) for the next restart of the pair. `keep`: this configuration, whose id is
    `good_id`, is not yet the last good one here. `remember`: it was not yet proved on this kernel and driver.
    """
    files = differing(wanted, node.get("files") or {})
    supervised = _supervised(head)
    running = running_digest(head)
    # A supervisor that says nothing may serve the right thing: starting finds out.
    stop = supervised and (restart or running not in (None, digest))
    units = [one for one in files if str(one["path"]).startswith(UNITS)]
    # A rank without a supervisor (an orphan) is stopped by the next start, which comes after the writing.
    held = rank_runs(node) and not stop
    write = [one for one in files if not (held and one in units)]
    # A run that was interrupted between writing and reloading leaves systemd with the old text.
    stale = any(unit.get("NeedDaemonReload") == "yes" for unit in (node.get("services") or {}).values())
    start = stop or not _serves(head, digest)
    steps = {
        "runtime": node.get("runtime") != runtime,
        "stop": stop,
        "write": write,
        "reload": (bool(units) or stale) and not held,
        "units_wait": bool(units) and held,
        "start": start,
        "remember": not is_remembered(node),
        "keep": not _is_kept(node, wanted, runtime, good_id),
        "refresh": supervised and not start and _is_behind(head, wanted, runtime),
    }
    return {"needed": any(steps.values()), **steps}


def _serves(head: Mapping[str, Any], digest: str) -> bool:
    """Whether the pair serves this configuration and will do so after a reboot."""
    unit = (head.get("services") or {}).get("twinserve.service", {})
    state = head.get("state") or {}
    return (_supervised(head) and unit.get("UnitFileState") == "enabled"
            and state.get("state") == "serving" and state.get("digest") == digest)  # fmt: skip


def _is_kept(
    node: Mapping[str, Any], wanted: Sequence[Mapping[str, Any]], runtime: str, good_id: str
) -> bool:
    kept = next(iter(node.get("good") or []), None)
    mine = [one for one in wanted if str(one["path"]).startswith(ETC)]
    return (
        kept is not None
        and (kept["id"], kept["runtime"]) == (good_id, runtime)
        and not differing(mine, kept["files"])
    )


def _is_behind(head: Mapping[str, Any], wanted: Sequence[Mapping[str, Any]], runtime: str) -> bool:
    """Whether the supervisor runs another runtime, or has read another configuration (the head's files)."""
    state = head.get("state") or {}
    read = [text_hash(one["content"]) for one in wanted if one["path"] == PAIR]
    return bool(read) and [state.get("runtime"), state.get("config_sha256")] != [runtime, *read]


def running_digest(head: Mapping[str, Any]) -> str | None:
    """Which configuration the supervisor runs or tries to run; None when it does not say."""
    state = head.get("state") or {}
    return state.get("digest") if _supervised(head) else None


def missing_parts(
    node: Mapping[str, Any], snapshots: Sequence[Mapping[str, Any]], image: Mapping[str, Any] | None
) -> list[str]:
    """Names of what must be there before a rank can start, and is not; `image` is what the rank would run."""
    found = (node.get("hf") or {}).get("snapshots") or {}
    lacking = [
        one["repo"]
        for one in snapshots
        if not found.get(f"{one['repo']}@{one['revision']}", {}).get("complete")
    ]
    if not image:
        # It may have one of other content: two ranks of two images would not speak to each other.
        lacking.insert(0, "the head's image" if node.get("image") else "the image")
    return lacking


def _supervised(head: Mapping[str, Any]) -> bool:
    return node_runs(head, "twinserve.service")
