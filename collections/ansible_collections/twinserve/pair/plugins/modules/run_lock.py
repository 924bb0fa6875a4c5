#!/usr/bin/python
"""Ansible module: hold a pair for this run of a playbook, on its head."""

from __future__ import annotations

DOCUMENTATION = r"""
module: run_lock
short_description: Hold a pair for this run, which is about to change it
description:
  - Fails on the head of a pair, and names who it is, while another run holds the pair, and when another run has held it
    since this one looked at it. Other nodes are not asked anything.
  - The action of the same name fills in who runs this, and finds out whether another run of the same controller has
    ended. It also fails, and asks no node anything, when C(--limit) leaves a node of the pair out. In check mode nothing
    is held, and no other run refuses anything.
author: [The Twinserve developers]
options:
  state:
    description: V(held) from now on, or V(released) again. A run that was killed holds nothing.
    type: str
    choices: [held, released]
    default: held
  holder:
    description: The run. Filled in by the action.
    type: dict
  gone:
    description: The id of a run that has ended, as its controller knows. Filled in by the action.
    type: str
  seen:
    description:
      - The id of the run that held the node last when this one looked, RV(twinserve.pair.node_facts#module:ansible_facts)
        has it; empty for none. Without it nothing that happened before is asked for.
    type: str
attributes:
  check_mode: {support: full, description: Does nothing.}
  diff_mode: {support: none, description: A run is not told as a change.}
"""

EXAMPLES = r"""
- name: Hold the pair for this run
  twinserve.pair.run_lock:
    seen: "{{ ansible_facts['twinserve_node'].held }}"
  become: true
"""

RETURN = r"""
head:
  description: The node that has the lock.
  type: str
  returned: always
holder:
  description: The other run, when it is the reason for a failure.
  type: dict
  returned: on failure
"""

import os
from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import run_lock

ARGUMENTS: dict[str, Any] = {
    "state": {"type": "str", "choices": ["held", "released"], "default": "held"},
    "holder": {"type": "dict"},
    "gone": {"type": "str"},
    "seen": {"type": "str"},
}


def main() -> None:
    """Take it, or say who has it."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    if module.check_mode:
        module.exit_json(changed=False)
    given = module.params
    try:
        own = run_lock.parse(given["holder"])
        if own is None:
            raise ValueError("no run was named")
        if given["state"] == "released":
            run_lock.let_go(own)
        else:
            run_lock.take(own.at(os.getpid()), given["seen"], given["gone"])
    except run_lock.HeldError as error:
        module.fail_json(msg=str(error), holder=asdict(error.holder))
    except (OSError, ValueError, KeyError) as error:
        module.fail_json(msg=f"{run_lock.PATH}: {error}")
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
