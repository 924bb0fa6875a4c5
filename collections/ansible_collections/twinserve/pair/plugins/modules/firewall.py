#!/usr/bin/python
"""Ansible module: load the rules that keep the engine's ports to the pair, with a timed way back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: firewall
short_description: Keep the engine's ports of a node to its pair
description:
  - Loads a table of nftables of its own, C(inet twinserve), beside the rules of others, and has each boot load it by the unit
    C(twinserve-firewall.service). Rules, tables and files of others are never touched.
  - Before new rules are loaded, a timer of systemd is armed that brings the old ones back after 25 seconds. It is disarmed only
    by V(state=confirmed), for which the action plugin of the same name makes a new connection. Only then are they written for
    the next boot.
  - No reload of systemd, so that it may be run under a running rank.
author: [The Twinserve developers]
options:
  rules:
    description: Whole content of C(/etc/twinserve/firewall.nft), which the filter C(firewall_plan) makes.
    type: str
    default: ""
  unit:
    description: Whole content of the unit that loads it at boot.
    type: str
    default: ""
  add:
    description: What to let in by an active ufw or firewalld, as the filter C(firewall_plan) says.
    type: list
    elements: dict
    default: []
  drop:
    description: What of that is not needed any more.
    type: list
    elements: dict
    default: []
  state:
    description:
      - V(present) loads the rules, V(absent) takes away all that this module has made.
      - V(confirmed) keeps the rules that wait for it; the action plugin calls it by itself.
    type: str
    choices: [present, confirmed, absent]
    default: present
attributes:
  check_mode: {support: full, description: Compares and predicts.}
  diff_mode: {support: full, description: "Shows the rules, and what is added to the firewalls of others."}
"""

EXAMPLES = r"""
- name: Keep the engine's ports to the pair
  twinserve.pair.firewall:
    rules: "{{ plan.rules }}"
    unit: "{{ lookup('ansible.builtin.file', 'twinserve-firewall.service', rstrip=false) }}"
    add: "{{ plan.add }}"
    drop: "{{ plan.drop }}"

- name: Take the firewall away
  twinserve.pair.firewall:
    state: absent
"""

RETURN = r"""
way_back:
  description:
    - C(armed) while new rules wait to be confirmed, C(kept) once they are, C(undone) when the node took them back.
    - C(none) when there is nothing to take back.
  type: str
  returned: when the node knows
  sample: armed
"""

from contextlib import nullcontext
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import firewall_table
from ..module_utils.confirming import ApplyError, Outcome, alone, answer
from ..module_utils.shell import CommandError

WHAT = "the firewall"
ARGUMENTS: dict[str, Any] = {
    "rules": {"type": "str", "default": ""},
    "unit": {"type": "str", "default": ""},
    "add": {"type": "list", "elements": "dict", "default": []},
    "drop": {"type": "list", "elements": "dict", "default": []},
    "state": {"type": "str", "choices": ["present", "confirmed", "absent"], "default": "present"},
}


def main() -> None:
    """Compare, then predict or do."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        if module.params["state"] == "confirmed":
            answer(module, firewall_table.NAME, WHAT, firewall_table.keep)
        outcome = change(module.params, module.check_mode)
    except (ApplyError, CommandError, OSError) as error:
        # Said also of a change that never began: who called must not wait for a timer.
        module.fail_json(msg=str(error), way_back="none")
    diff = {"before": outcome.before, "after": outcome.after}
    module.exit_json(changed=outcome.changed, diff=diff, way_back="armed" if outcome.armed else "none")


def change(params: dict[str, Any], check: bool) -> Outcome:
    """Do or predict what `state` says. Raises ApplyError, CommandError or OSError."""
    with nullcontext() if check else alone(firewall_table.NAME, WHAT):
        if params["state"] == "absent":
            return firewall_table.absent(check)
        others = {"add": params["add"], "drop": params["drop"]}
        return firewall_table.present(params["rules"], params["unit"], others, check)


if __name__ == "__main__":
    main()
