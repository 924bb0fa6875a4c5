#!/usr/bin/python
"""Ansible module: set RDMA ports up, so that they can tell whether a cable is in them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ports_up
short_description: Set network ports up and see which have carrier
description:
  - A port that is administratively down does not know whether its cable has a live other end.
  - Sets the given ports up, gives them no address, and waits a few seconds for carrier.
  - That they were down is kept in C(/var/lib/twinserve/fabric/before.json), for M(twinserve.pair.rail_addresses) with
    V(state=absent).
author: [The Twinserve developers]
options:
  netdevs:
    description: Ports to set up.
    type: list
    elements: str
    required: true
attributes:
  check_mode: {support: full, description: Reports the change and leaves the ports alone.}
  diff_mode: {support: full, description: Shows each port's state.}
"""

EXAMPLES = r"""
- name: Set the RDMA ports up
  twinserve.pair.ports_up:
    netdevs: [enp1s0f0np0, enP2p1s0f0np0]
"""

RETURN = r"""
carrier:
  description: Ports that have carrier.
  type: list
  elements: str
  returned: outside check mode
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import fabric_record
from ..module_utils.carrier import bring_up
from ..module_utils.netdevs import read_links
from ..module_utils.shell import CommandError

ARGUMENTS: dict[str, Any] = {"netdevs": {"type": "list", "elements": "str", "required": True}}


def main() -> None:
    """Compare, then predict or do."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
    )
    try:
        links = read_links()
        down = [netdev for netdev in module.params["netdevs"] if not links.get(netdev, {}).get("up")]
        diff = {"before": "".join(f"{n}: down\n" for n in down), "after": "".join(f"{n}: up\n" for n in down)}
        if module.check_mode or not down:
            module.exit_json(changed=bool(down), diff=diff)
        fabric_record.ensure(down)
        module.exit_json(changed=True, diff=diff, carrier=bring_up(down))
    except CommandError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
