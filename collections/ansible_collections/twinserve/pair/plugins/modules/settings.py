#!/usr/bin/python
"""Documentation of the action plugin of the same name, which does all the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: settings
short_description: Read, check and complete the settings of a host
description:
  - Finds the pair of the host in the inventory, reads every setting from its variables, converts and checks them,
    looks up what the release says, and returns the result as facts.
  - All faults are told together, each with the setting, the value and what is allowed. What concerns the whole pair is
    told by its head.
  - Runs on the controller and never connects.
author: [The Twinserve developers]
options:
  engines_path:
    description: Folder with the engines' data; the product's own when not given.
    type: path
attributes:
  check_mode: {support: full, description: Only reads.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Check the settings
  twinserve.pair.settings:

- name: Show the window
  ansible.builtin.debug:
    msg: "{{ ansible_facts.twinserve_settings.effective.context }}"
"""

RETURN = r"""
ansible_facts:
  description: What the rest of a run works with.
  returned: success
  type: dict
  contains:
    twinserve_settings:
      description:
        - Every setting with its typed value. Secrets are left out; C(<name>_given) says whether there is one.
        - C(effective) has what extra arguments make of the settings with an option of their own.
      type: dict
    twinserve_pair:
      description: The pair, with C(name), C(rank) of this host, C(hosts) by rank, C(head) and C(workers).
      type: dict
    twinserve_release:
      description: The data of the engine with those of the release laid over it.
      type: dict
"""
