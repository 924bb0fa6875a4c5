#!/usr/bin/python
"""Ansible module: verify the API of a serving pair with one real request."""

from __future__ import annotations

DOCUMENTATION = r"""
module: api_check
short_description: Verify the API of a serving pair
description:
  - Runs on the head. Lists the models, asks for one chat completion and reads the metrics, and sees where the API listens.
author: [The Twinserve developers]
options:
  base:
    description: Base URL of the API without C(/v1).
    type: str
    required: true
  bind:
    description: Address at which the API must listen; not looked at when it is not given.
    type: str
  served_name:
    description: Model id that must be listed.
    type: str
    required: true
  prompt:
    description: What to ask.
    type: str
    default: What is the capital of France? Answer in one word.
  extra:
    description: Further fields of the request.
    type: dict
    default: {}
  max_tokens:
    description: Reply budget in tokens.
    type: int
    default: 32
  gateway:
    description: The gateway in front of it, which must let in who has a key, and nobody else.
    type: dict
    suboptions:
      host:
        description: Address on which it listens.
        type: str
        required: true
      port:
        description: Its port.
        type: int
        required: true
      name:
        description: A name that its certificate must have.
        type: str
attributes:
  check_mode: {support: full, description: Only asks.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Verify the API
  twinserve.pair.api_check:
    base: http://127.0.0.1:8888
    served_name: GLM-5.3-Flash-EXL3
"""

RETURN = r"""
answer:
  description: The reply.
  type: str
  returned: success
seconds:
  description: How long the reply took.
  type: float
  returned: success
busy:
  description: Whether the API had no time for the request (status 429 or 503, or a timeout), which proves nothing.
  type: bool
  returned: failure
health:
  description: What the engine says of itself.
  type: dict
  returned: success
"""

from typing import Any
from urllib.parse import urlsplit

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.api_check import ApiBusy, ApiError, bound, check
from ..module_utils.gateway import check as gateway_check
from ..module_utils.listeners import read_listeners
from ..module_utils.shell import CommandError

ARGUMENTS: dict[str, Any] = {
    "base": {"type": "str", "required": True},
    "bind": {"type": "str"},
    "served_name": {"type": "str", "required": True},
    "prompt": {"type": "str", "default": "What is the capital of France? Answer in one word."},
    "extra": {"type": "dict", "default": {}},
    "max_tokens": {"type": "int", "default": 32},
    "gateway": {
        "type": "dict",
        "options": {
            "host": {"type": "str", "required": True},
            "port": {"type": "int", "required": True},
            "name": {"type": "str"},
        },
    },
}


def main() -> None:
    """Ask, and report the answer."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
    )
    given = module.params
    try:
        found = check(
            given["base"], given["served_name"], given["prompt"], given["extra"], given["max_tokens"]
        )
        if given["gateway"]:
            gateway_check.check(gateway_check.Gateway(**given["gateway"]))
        if given["bind"]:
            bound(given["bind"], urlsplit(given["base"]).port or 80, read_listeners())
    except CommandError as error:
        module.fail_json(msg=f"where the API listens is not known: {error}", busy=False)
    except ApiError as error:
        module.fail_json(msg=str(error), busy=isinstance(error, ApiBusy))
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
