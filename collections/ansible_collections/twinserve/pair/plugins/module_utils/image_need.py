"""How much room the image's way onto each node takes in Docker's store: pure, from all probes. In GiB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .image_source import steps

_TWICE = "containerd store keeps packed and unpacked layers"
_TAR = "docker save and docker load write the whole image beside the layers"


def needs(
    nodes: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], release: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """By rank: `gib`, `why` in words, and `comes`: whether an image comes, or is only sent on.

    A node that keeps the image it has needs nothing; one that replaces it has both for a while.
    """
    planned = steps(nodes, settings, release, checking=True)
    sends = [any(one["stream"] for one in planned), *(False for _ in planned[1:])]
    return [
        _need(node, step, sending, settings, release)
        for node, step, sending in zip(nodes, planned, sends, strict=True)
    ]


def _need(
    node: Mapping[str, Any],
    step: Mapping[str, bool],
    sends: bool,
    settings: Mapping[str, Any],
    release: Mapping[str, Any],
) -> dict[str, Any]:
    comes, layers = any(step.values()), float(release.get("image_layers_gib", 0))
    containerd = (node.get("docker") or {}).get("store") == "containerd"
    reasons = []
    if comes and containerd:
        reasons.append(_TWICE)
    # Docker's own store: below its folder for temporary files, on the same filesystem.
    if not containerd and (sends or step["load"] or step["stream"]):
        reasons.append(_TAR)
    gib = float(settings["image_min_free_gib"]) * comes + layers * len(reasons)
    why = (
        f"about {gib:.0f} GiB needed ({reasons[0]})"
        if reasons
        else f"{gib:.0f} GiB needed (image_min_free_gib)"
    )
    return {"gib": gib, "why": why, "comes": comes}
