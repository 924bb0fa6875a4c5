"""Outputs of the GPU: what the driver reserves for displays is free for others where none is in use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .kernel_files import link_name, names, read_attr


def read_outputs(root: Path = Path("/")) -> dict[str, str]:
    """Status by output (`card0-HDMI-A-1`), without those of cards that another driver is known to have."""
    base = root / "sys/class/drm"
    found = {}
    for name in names(base):
        card, dash, _ = name.partition("-")
        if dash and link_name(base / card / "device/driver") in (None, "nvidia"):
            found[name] = read_attr(base / name / "status") or "unknown"
    return found


def faults(node: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """Why this node cannot give its display memory away."""
    outputs: Mapping[str, str] | None = node.get("displays")
    if not settings.get("display_kv_mib") or outputs is None:
        return []
    if not outputs:
        return ["/sys/class/drm shows no outputs (nvidia_drm modeset=0); set display_kv_mib: 0"]
    return [
        f"{name} has a display connected; set display_kv_mib: 0"
        for name, status in outputs.items()
        if status == "connected"
    ]
