"""Filters of the gateway: thin names for pure functions of `module_utils`."""

from __future__ import annotations

from typing import Any

from ansible_collections.twinserve.pair.plugins.module_utils.gateway.certificate import alternative_names
from ansible_collections.twinserve.pair.plugins.module_utils.gateway.plan import plan
from ansible_collections.twinserve.pair.plugins.module_utils.gateway.upstream import upstream_conf


class FilterModule:
    """Names as used in YAML."""

    def filters(self) -> dict[str, Any]:
        """Map each name to its function."""
        return {
            "gateway_plan": plan,
            "gateway_upstream": upstream_conf,
            "certificate_names": alternative_names,
        }
