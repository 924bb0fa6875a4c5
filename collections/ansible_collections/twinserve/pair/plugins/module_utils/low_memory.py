"""Too little memory for a start: on unified memory that does not fail, it takes the whole node down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def needed_gib(settings: Mapping[str, Any], release: Mapping[str, Any]) -> float | None:
    """What the release asks for on each node at a start; None where that is not to be looked at."""
    asked: float | None = (release.get("memory") or {}).get("available_gib")
    return None if settings["allow_low_memory"] else asked


def shortage(available_gib: float, needed_gib: float | None, holders: Sequence[str] = ()) -> str | None:
    """Say how much is missing, who has it, and what to do; None where there is enough or nothing is asked."""
    if needed_gib is None or available_gib >= needed_gib:
        return None
    used = f"; in use by {', '.join(holders)}" if holders else ""
    return (
        f"{available_gib:.0f} GiB available, about {needed_gib:.0f} needed{used}; stop other work, or set "
        "allow_low_memory: true"
    )
