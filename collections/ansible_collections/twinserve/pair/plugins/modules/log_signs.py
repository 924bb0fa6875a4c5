#!/usr/bin/python
"""Ansible module: known failures in a node's logs, each with its cure."""

from __future__ import annotations

DOCUMENTATION = r"""
module: log_signs
short_description: Look for known failures in the logs of a node
description:
  - Reads what the rank printed in its latest start, the kept logs of earlier ones, the logs of jobs, and the kernel's log of
    this boot. Changes nothing.
author: [The Twinserve developers]
options:
  engine:
    description: How failures of the engine look, each with C(pattern), a regular expression, and C(cure), a sentence.
    type: list
    elements: dict
    default: []
  hf_home:
    description: The cache root of the login user, where his login at the hub is.
    type: path
  secrets:
    description: Texts that must not be told, beside those that the node knows itself.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Only reads.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Look for known failures
  twinserve.pair.log_signs:
    engine:
      - {pattern: CUDA out of memory, cure: set a smaller kv_pool_gib}
"""

RETURN = r"""
found:
  description: Each known failure once, with C(line), its last line, C(where) and C(at), C(count) and C(cure).
  type: list
  elements: dict
  returned: always
unread:
  description: Logs that could not be read, each with the reason.
  type: list
  elements: str
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import diagnosis, log_signs

# Without the supervisor's: it repeats the ranks' last lines with every failure.
_LOGS = ("starts/", "rank.log", "jobs/", "system/kernel.log")
ARGUMENTS: dict[str, Any] = {
    "engine": {"type": "list", "elements": "dict", "default": []},
    "hf_home": {"type": "path"},
    "secrets": {"type": "list", "elements": "str", "default": [], "no_log": True},
}


def main() -> None:
    """Read, look, report."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    logs, unread = [], []
    for part in sorted(diagnosis.parts(dict), key=_age):
        if part.name.startswith(_LOGS):
            try:
                logs.append((part.name, part.read()))
            except diagnosis.UNREADABLE as error:
                unread.append(f"{part.name} cannot be read: {error}")
    given = module.params
    secrets: list[str] = given["secrets"]
    try:
        secrets = [*secrets, *diagnosis.secrets_here(given["hf_home"])]
    except OSError as error:
        unread.append(f"the login at the hub, which is kept out of this list, cannot be read: {error}")
    try:
        found = log_signs.scan(logs, log_signs.signs(given["engine"]), secrets)
    except (ValueError, KeyError) as error:
        module.fail_json(msg=f"engine: {error}")
    module.exit_json(changed=False, found=found, unread=unread)


def _age(part: diagnosis.Part) -> int:
    """Earlier starts come before the latest, so that the last line told is the newest."""
    return 0 if part.packed else 1


if __name__ == "__main__":
    main()
