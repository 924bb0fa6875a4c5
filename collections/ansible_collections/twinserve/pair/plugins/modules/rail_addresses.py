#!/usr/bin/python
"""Ansible module: give the rails of a node their addresses by a netplan file, with a way back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_addresses
short_description: Give the rails of a node their addresses
description:
  - Writes one netplan file, checks it as merged, applies it and waits until the ports have what it says.
  - When the address of another port, such as that of the management network, does not come back within 5 seconds, the
    node restores the file by itself and fails. A timer does the same when the module is killed with its session.
author: [The Twinserve developers]
options:
  path:
    description: The netplan file.
    type: path
    required: true
  content:
    description: Its whole content.
    type: str
    required: true
  ports:
    description: "What each port shall have afterwards: C(netdev), C(address) with prefix length, C(mtu) in bytes."
    type: list
    elements: dict
    required: true
attributes:
  check_mode: {support: full, description: Compares and predicts.}
  diff_mode: {support: full, description: Shows the file.}
"""

EXAMPLES = r"""
- name: Give the rails their addresses
  twinserve.pair.rail_addresses:
    path: /etc/netplan/60-twinserve-fabric.yaml
    content: "{{ plan.netplan }}"
    ports: "{{ plan.ports }}"
"""

RETURN = r"""
{}
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.netplan_apply import ApplyError, apply_file, is_set
from ..module_utils.shell import CommandError

ARGUMENTS: dict[str, Any] = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str", "required": True},
    "ports": {"type": "list", "elements": "dict", "required": True},
}


def main() -> None:
    """Compare, then predict or do."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
    )
    path, content = Path(module.params["path"]), module.params["content"]
    before = path.read_text() if path.is_file() else ""
    diff = {"before": before, "after": content, "before_header": str(path), "after_header": str(path)}
    ports = module.params["ports"]
    try:
        # The same file may not be live: somebody changed the port by hand.
        changed = before != content or not all(is_set(port) for port in ports)
        if changed and not module.check_mode:
            apply_file(path, content, ports)
    except (ApplyError, CommandError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, diff=diff)


if __name__ == "__main__":
    main()
