"""Folders that keep what users sent (prompts on disk): none but their owner may read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from .conditions import Facts, holds

_OTHERS = 0o077


def wanted(settings: Mapping[str, Any], release: Mapping[str, Any]) -> dict[str, str]:
    """The folder of each setting that names one, with these settings: the release's `private` mounts."""
    sources = [
        Template(mount["source"])
        for mount in release["mounts"]
        if mount.get("private") and holds(mount.get("when"), Facts(settings))
    ]
    return {name: str(settings[name]) for source in sources for name in source.get_identifiers()}


def read(folders: Mapping[str, str]) -> dict[str, str]:
    """The mode of those that are there, by setting."""
    there = {name: Path(path) for name, path in folders.items() if Path(path).is_dir()}
    return {name: f"{path.stat().st_mode & 0o777:04o}" for name, path in there.items()}


def faults(node: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """Those that others may enter: what lies in them already may have been read, so that is for people."""
    return [
        f"{name} is readable by others ({mode}): see what is in it, then run chmod 700 {settings[name]}"
        for name, mode in (node.get("private") or {}).items()
        if int(mode, 8) & _OTHERS
    ]
