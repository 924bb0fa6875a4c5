#!/usr/bin/python
"""Ansible module: ask the hub whether snapshots may be downloaded."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hub_access
short_description: Ask the hub whether model snapshots may be downloaded
description:
  - Asks for one small file of each snapshot, with the token that the download will use, and changes nothing.
  - Fails with the reason when the hub refuses one, before hours of other work are done.
author: [The Twinserve developers]
options:
  snapshots:
    description: What is to be downloaded.
    type: list
    elements: dict
    required: true
    suboptions:
      repo:
        description: Repository, C(organisation/name).
        type: str
        required: true
      revision:
        description: Commit.
        type: str
        required: true
  partly_here:
    description: Whether the node has files of them, so that a hub that does not answer is only warned of.
    type: bool
    default: false
  endpoint:
    description: The hub's address; the public one when it is not given.
    type: str
  token:
    description: Token for gated repositories.
    type: str
  proxies:
    description: Proxy variables, C(https_proxy) and such.
    type: dict
    default: {}
attributes:
  check_mode: {support: full, description: Only asks.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Ask the hub
  twinserve.pair.hub_access:
    snapshots:
      - repo: example/model
        revision: 9eaebb7c4e96d983dcd538e18624622ba5b820a8
"""

RETURN = r"""
silent:
  description: Why the hub did not answer, when it did not and that is only warned of.
  type: str
  returned: success
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import hub_access

ARGUMENTS: dict[str, Any] = {
    "snapshots": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "repo": {"type": "str", "required": True},
            "revision": {"type": "str", "required": True},
        },
    },
    "partly_here": {"type": "bool", "default": False},
    "endpoint": {"type": "str"},
    "token": {"type": "str", "no_log": True},
    "proxies": {"type": "dict", "default": {}, "no_log": True},
}


def main() -> None:
    """Ask for each, tell all that is refused."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    given = module.params
    proxies = {name: str(value or "") for name, value in given["proxies"].items()}
    refused, silent = [], ""
    for one in given["snapshots"]:
        url = hub_access.address(given["endpoint"], one["repo"], one["revision"])
        try:
            status, code = hub_access.ask(url, given["token"] or "", proxies)
        except OSError as error:
            silent = f"no answer from {given['endpoint'] or hub_access.PUBLIC}: {error}"
            if not given["partly_here"]:
                module.fail_json(msg=silent)
            module.warn(f"{silent}; going on with what is here")
            continue
        refused.append(hub_access.verdict(status, code, one["repo"], one["revision"], bool(given["token"])))
    if any(refused):
        module.fail_json(msg="; ".join(filter(None, dict.fromkeys(refused))))
    module.exit_json(changed=False, silent=silent)


if __name__ == "__main__":
    main()
