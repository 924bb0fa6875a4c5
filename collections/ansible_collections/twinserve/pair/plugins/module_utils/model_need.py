"""How much room what has still to come takes on a node: pure, from its probe and the hub's lists. In GiB."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import hf_blobs
from .model_transfer import selected
from .shared_weights import HOME

_GIB = float(1 << 30)
_WORKING_ROOM = 5  # GiB
# Of each snapshot (`repo@revision`) whose list could be read: size by etag.
Lists = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Need:
    """`gib` with some room to work; `bytes` that really come; `unknown`: the hub's list could not be read."""

    gib: float
    bytes: int
    unknown: bool


def weights(
    node: Mapping[str, Any], settings: Mapping[str, Any], release: Mapping[str, Any], lists: Lists
) -> Need:
    """What the snapshots that are not whole have still to bring.

    By the hub's lists; without them what the catalogue says less what is there, where the largest of those
    figures has room enough for the smaller snapshots.
    """
    hf = node.get("hf") or {}
    # Weights that are mounted from the head take no room here.
    found = {} if hf.get("home") == HOME else hf.get("snapshots") or {}
    listed, unlisted, unknown = [], [0.0], False
    for entry in selected(settings, release):
        name = f"{entry['repo']}@{entry['revision']}"
        state = found.get(name) or {"complete": True}
        if state["complete"]:
            continue
        if (missing := _missing(state, lists.get(name))) is not None:
            listed.append(missing)
        else:
            unknown = True
            room = float(entry.get("disk_gib", settings["model_min_free_gib"]))
            unlisted.append(max(0.0, room - state["here"] / _GIB))
    exact = sum(listed)
    gib = (exact / _GIB + _WORKING_ROOM if listed else 0.0) + max(unlisted)
    return Need(gib, round(exact + max(unlisted) * _GIB), unknown)


def _missing(state: Mapping[str, Any], listed: Mapping[str, int] | None) -> int | None:
    if listed:
        return hf_blobs.missing(listed, state.get("blobs") or {})
    known: int | None = state["missing"]
    return known


def words(
    node: Mapping[str, Any],
    name: str,
    settings: Mapping[str, Any],
    release: Mapping[str, Any],
    lists: Lists | None = None,
    image: Mapping[str, Any] | None = None,
) -> str:
    """What a run will bring to the node, and what is free there; empty when nothing has to come.

    `image` is what the image needs here (module `image_need`), nothing without.
    """
    need = weights(node, settings, release, lists or {})
    coming, places = [], dict[str, Mapping[str, Any]]()
    if image and image["gib"]:
        what = "image" if image["comes"] else "room to send the image,"
        coming.append(f"{what} up to {image['gib'] * _GIB / 1e9:.0f} GB")
        places["images"] = node["disk"].get("images") or {}
    if need.bytes or need.unknown:
        about = "up to " if need.unknown else ""
        coming.append(f"weights {about}{need.bytes / 1e9:.1f} GB into {node['hf']['home']}")
        places["weights"] = node["disk"].get("hf_cache") or {}
    free = {one["path"]: one["free_gb"] for one in places.values() if one}
    if not coming:
        return ""
    room = ", ".join(f"{gb:.1f} GB free in {path}" for path, gb in free.items()) or "free space not known"
    return f"{name} needs: {'; '.join(coming)} ({room})"
