"""Action `twinserve.pair.rail_addresses`: keep a change of a node's rails only over a new connection."""

from __future__ import annotations

from typing import Any

from ansible_collections.twinserve.pair.plugins.plugin_utils.keeping import KeepingAction


class ActionModule(KeepingAction):
    """The module of the same name, with its change confirmed."""

    module = "rail_addresses"
    playbook = "playbooks/fabric.yml"
    look = "ip addr, ls /etc/netplan"

    def tried(self, args: dict[str, Any]) -> str:
        """In words of the link."""
        if args.get("state") == "absent":
            return "its link was being put back as it was before Twinserve"
        ports = [f"{port['address']} to {port['netdev']}" for port in args.get("ports") or []]
        return f"its rails were being addressed ({', '.join(ports)})"
