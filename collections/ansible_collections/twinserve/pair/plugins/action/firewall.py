"""Action `twinserve.pair.firewall`: keep new rules on a node only over a new connection."""

from __future__ import annotations

from typing import Any

from ansible_collections.twinserve.pair.plugins.plugin_utils.keeping import KeepingAction


class ActionModule(KeepingAction):
    """The module of the same name, with its change confirmed."""

    module = "firewall"
    playbook = "playbooks/firewall.yml"
    look = "nft list ruleset"

    def tried(self, args: dict[str, Any]) -> str:
        """In words of the firewall."""
        return "its firewall was being loaded"
