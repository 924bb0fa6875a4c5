"""Filters that render what the nodes are told: thin names for pure functions of `module_utils`."""

from __future__ import annotations

from typing import Any

from ansible_collections.twinserve.pair.plugins.module_utils.docker_argv import docker_argv
from ansible_collections.twinserve.pair.plugins.module_utils.render import (
    pair_config,
    probe_host,
    rank_plans,
    snapshot_path,
)


class FilterModule:
    """Names as used in YAML."""

    def filters(self) -> dict[str, Any]:
        """Map each name to its function."""
        return {
            "rank_plans": rank_plans,
            "pair_config": pair_config,
            "probe_host": probe_host,
            "docker_argv": docker_argv,
            "snapshot_path": snapshot_path,
        }
