"""The catalogue of releases: entries that may extend others, laid over the data of their engine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any


class CatalogueError(ValueError):
    """An entry that is missing, extends what does not exist or itself, or cannot work."""


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` laid over `base`: maps are merged, everything else is replaced."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        both_maps = isinstance(value, Mapping) and isinstance(below, Mapping)
        result[key] = merged(below, value) if both_maps else value  # type: ignore[arg-type]
    return result


def release_names(engine: str, entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The releases of `engine`, oldest first as people count (v1.9 before v1.10)."""
    mine = [name for name in entries if _chain(name, entries)[0].get("engine") == engine]
    return sorted(
        mine,
        key=lambda name: [int(part) if part.isdigit() else part.lower() for part in re.split(r"(\d+)", name)],
    )


def release_data(
    name: str, engine: Mapping[str, Any], entries: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Everything about release `name`: its engine's data, what it extends, and itself on top.

    Raises CatalogueError with a message for the user.
    """
    result: dict[str, Any] = dict(engine)
    for entry in _chain(name, entries):
        result = merged(result, entry)
    result.pop("extends", None)
    if fault := _mount_fault(result.get("mounts", [])):
        raise CatalogueError(f"release {name}: {fault}")
    return {**result, "release": name}


def _mount_fault(mounts: Sequence[Mapping[str, Any]]) -> str | None:
    """A mount of less than the whole cache: the links of a snapshot lead out of its own folder (M-14)."""
    below = (str(one["source"]) for one in mounts if str(one["source"]).startswith("${hf_cache}/"))
    return next(
        (f"mount {one} does not contain hub/blobs, which the snapshot links to" for one in below), None
    )


def _chain(name: str, entries: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The entry and all that it extends, the root first."""
    chain: list[Mapping[str, Any]] = []
    seen: list[str] = []
    current: str | None = name
    while current is not None:
        if current in seen:
            raise CatalogueError(f"release {name} extends itself: {' -> '.join([*seen, current])}")
        if current not in entries:
            raise CatalogueError(
                f"release {seen[-1] if seen else name} extends {current}, which does not exist"
            )
        seen.append(current)
        chain.insert(0, entries[current])
        current = entries[current].get("extends")
    return chain
