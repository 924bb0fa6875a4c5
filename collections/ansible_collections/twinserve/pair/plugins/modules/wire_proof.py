#!/usr/bin/python
"""Ansible module: whether the head can log in to its workers with its own keys."""

from __future__ import annotations

DOCUMENTATION = r"""
module: wire_proof
short_description: Log in from the head to its workers with each of its keys
description:
  - Opens every connection that the head needs, with the keys and the known hosts that it will use, and asks for a
    command that no key is for. Coming as far as its refusal is what is wanted.
author: [The Twinserve developers]
options:
  logins:
    description: The connections.
    type: list
    elements: dict
    required: true
    suboptions:
      key:
        description: Name of the key.
        type: str
        choices: [control, copy, image]
        required: true
      user:
        description: Account on the worker.
        type: str
        required: true
      address:
        description: Address of the worker.
        type: str
        required: true
attributes:
  check_mode: {support: full, description: Changes nothing on either node.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Log in to the worker
  twinserve.pair.wire_proof:
    logins:
      - {key: control, user: twinserve, address: 192.0.2.12}
      - {key: copy, user: bob, address: 198.51.100.2}
"""

RETURN = r""" # """

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.ssh_client import login_argv, login_fault

_PATIENCE = 60.0  # seconds for one login: a node that is busy or slow still lets in
ARGUMENTS: dict[str, Any] = {
    "logins": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "key": {"type": "str", "choices": ["control", "copy", "image"], "required": True},
            "user": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
        },
    },
}


def main() -> None:
    """Try all at once; name every one that is refused."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    with ThreadPoolExecutor(max_workers=8) as pool:
        faults = [fault for fault in pool.map(_try, module.params["logins"]) if fault]
    if faults:
        module.fail_json(msg="\n".join(dict.fromkeys(faults)))
    module.exit_json(changed=False)


def _try(login: dict[str, str]) -> str | None:
    """What is wrong with one login."""
    key, user, address = login["key"], login["user"], login["address"]
    try:
        done = subprocess.run(
            login_argv(key, user, address, ["true"]),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return "ssh is not installed on the head: apt install openssh-client"
    except subprocess.TimeoutExpired:
        return f"ssh of the worker at {address} did not answer within {_PATIENCE:.0f} s"
    return login_fault(key, done.returncode, done.stderr, user, address)


if __name__ == "__main__":
    main()
