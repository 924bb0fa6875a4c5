"""The supervisor's state file, read by modules: what the pair does, and whether that is final."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

STATE = Path("/run/twinserve/state.json")
FINAL = ("serving", "down")
# Seconds between two looks at a small file in memory.
_POLL = 0.05


def read_state(path: Path = STATE) -> dict[str, Any] | None:
    """The state, or None when no supervisor has written one since boot."""
    try:
        state: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return state


def is_settled(state: dict[str, Any] | None, digest: str | None) -> bool:
    """Whether waiting longer brings nothing: it serves or is down with the configuration asked for."""
    return state is not None and state.get("state") in FINAL and digest in (None, state.get("digest"))


def wait_successor(pid: int | None, seconds: float, path: Path = STATE) -> bool:
    """Whether, within `seconds`, another supervisor than the one with `pid` has written the state."""
    limit = time.monotonic() + seconds
    while (read_state(path) or {}).get("pid") == pid:
        if time.monotonic() >= limit:
            return False
        time.sleep(_POLL)
    return True


def wait_state(digest: str | None, seconds: float, path: Path = STATE) -> dict[str, Any] | None:
    """The state once it is settled, or after `seconds`."""
    limit = time.monotonic() + seconds
    while not is_settled(state := read_state(path), digest) and time.monotonic() < limit:
        time.sleep(_POLL)
    return state
