"""Weights that a rank reads from the head: mounted before its container, which sees no later mount."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import nfs_probe
from ..shared_weights import HOME, MOUNT
from .errors import AgentError


def mount(plan: Mapping[str, Any], mounts: Path = Path("/proc/self/mounts")) -> None:
    """Have them mounted, if the plan has them. Raises CommandError or AgentError when they do not come."""
    if all(one["source"] != HOME for one in plan["mounts"]):
        return
    nfs_probe.reach()
    if nfs_probe.mounted(mounts.read_text(), MOUNT) is None:
        raise AgentError(f"the head's weights are not mounted at {MOUNT}: run playbooks/model.yml")
