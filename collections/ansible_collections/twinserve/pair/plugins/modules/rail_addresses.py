#!/usr/bin/python
"""Ansible module: give the rails of a node their addresses, or take them back, with a timed way back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_addresses
short_description: Give the rails of a node their addresses, or put the link back as it was
description:
  - Gives ports of systemd-networkd their addresses by one netplan file of ours, and ports of NetworkManager by one
    profile of ours each. Files and profiles of others are never touched.
  - The file is tried together with all others first. It is refused when another file is invalid, holds edits that were
    never applied, or would win over ours.
  - Before anything changes, a timer of systemd is armed that takes the change back after 25 seconds. When the address
    of another port, such as that of the management network, does not come back within 5 seconds, or a port does not
    get what it shall have, the node goes back at once. Bridges that Docker makes are not looked at. The timer is disarmed only by V(state=confirmed), for which the
    action plugin of the same name makes a new connection.
  - What each port was like before its first change is kept in C(/var/lib/twinserve/fabric/before.json); V(state=absent)
    restores it, under the same guard.
author: [The Twinserve developers]
options:
  netplan:
    description: Whole content of C(/etc/netplan/60-twinserve-fabric.yaml); not given, the file is left as it is.
    type: str
  profiles:
    description: >-
      NetworkManager profiles to have: C(netdev), C(address) with prefix length, C(mtu) in bytes, and C(more) addresses
      that are on the port and stay.
    type: list
    elements: dict
    default: []
  ports:
    description:
      - "What each port shall have afterwards: C(netdev), C(address) with prefix length, C(more) addresses, C(mtu) in bytes."
      - Ports that are neither in O(netplan) nor in O(profiles) are somebody else's and are left alone.
    type: list
    elements: dict
    default: []
  state:
    description:
      - V(present) gives the addresses, V(absent) restores what was there before the first change.
      - V(confirmed) keeps the change that waits for it; the action plugin calls it by itself.
    type: str
    choices: [present, confirmed, absent]
    default: present
attributes:
  check_mode: {support: full, description: Compares and predicts; what would be refused is refused.}
  diff_mode: {support: full, description: Shows the file, the profiles and the ports.}
"""

EXAMPLES = r"""
- name: Give the rails their addresses
  twinserve.pair.rail_addresses:
    netplan: "{{ plan.netplan }}"
    profiles: "{{ plan.profiles }}"
    ports: "{{ plan.ports }}"

- name: Put the link back as it was before Twinserve
  twinserve.pair.rail_addresses:
    state: absent
"""

RETURN = r"""
way_back:
  description:
    - C(armed) while the change waits to be confirmed, C(kept) once it is, C(undone) when the node took it back.
    - C(none) when there is nothing to take back.
  type: str
  returned: when the node knows
  sample: armed
"""

from contextlib import nullcontext
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import guard, rails_absent, rails_apply
from ..module_utils.confirming import ApplyError, Outcome, alone, answer
from ..module_utils.netplan_merge import MergeError
from ..module_utils.shell import CommandError

WHAT = "the rails"
ARGUMENTS: dict[str, Any] = {
    "netplan": {"type": "str"},
    "profiles": {"type": "list", "elements": "dict", "default": []},
    "ports": {"type": "list", "elements": "dict", "default": []},
    "state": {"type": "str", "choices": ["present", "confirmed", "absent"], "default": "present"},
}


def main() -> None:
    """Compare, then predict or do."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
    )
    try:
        if module.params["state"] == "confirmed":
            answer(module, guard.NAME, WHAT, rails_absent.confirmed)
        outcome = change(module.params, module.check_mode)
    except (ApplyError, MergeError, CommandError) as error:
        # Said also of a change that never began: who called must not wait for a timer.
        module.fail_json(msg=str(error), way_back="none")
    diff = {"before": outcome.before, "after": outcome.after}
    module.exit_json(changed=outcome.changed, diff=diff, way_back="armed" if outcome.armed else "none")


def change(params: dict[str, Any], check: bool) -> Outcome:
    """Do or predict what `state` says. Raises ApplyError, MergeError or CommandError."""
    with nullcontext() if check else alone(guard.NAME, WHAT):
        if params["state"] == "absent":
            return rails_absent.absent(check)
        wish = rails_apply.Wish(params["netplan"], params["profiles"], params["ports"])
        return rails_apply.present(wish, check)


if __name__ == "__main__":
    main()
