#!/usr/bin/python
"""Ansible module: check what a serving pair promises of its API."""

from __future__ import annotations

DOCUMENTATION = r"""
module: api_suite
short_description: Check what a serving pair promises of its API
description:
  - Runs on the head. Asks the API for everything that its release and settings promise, one named check each, and fails with
    the names of those that it did not keep, and what came back.
  - The checks take minutes on a busy pair, and up to 100 MB a request.
author: [The Twinserve developers]
options:
  base:
    description: Base URL of the API without C(/v1).
    type: str
    required: true
  promise:
    description: What is promised, from the pair's configuration.
    type: dict
    required: true
  only:
    description: Names of checks; all of them when it is empty.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Names the checks and asks nothing.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Check pictures and the tool call
  twinserve.pair.api_suite:
    base: http://127.0.0.1:8888
    promise: "{{ pair.promise }}"
    only: [image_png, tool_call]
"""

RETURN = r"""
results:
  description: Each check's name, result (passed, failed or skipped) and text.
  type: list
  elements: dict
  returned: when the API answers
summary:
  description: How many passed, and what was skipped why, one line each.
  type: list
  elements: str
  returned: when the API answers
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.acceptance.client import Api
from ..module_utils.acceptance.found import Wrong
from ..module_utils.acceptance.promise import read_promise
from ..module_utils.acceptance.suite import NAMES, run_check, summary, unknown

ARGUMENTS: dict[str, Any] = {
    "base": {"type": "str", "required": True},
    "promise": {"type": "dict", "required": True},
    "only": {"type": "list", "elements": "str", "default": []},
}


def main() -> None:
    """Ask, and report."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    base, promise, names = module.params["base"], module.params["promise"], module.params["only"] or NAMES
    if strange := unknown(names):
        module.fail_json(msg=f"no check is named {', '.join(strange)}; there are {', '.join(NAMES)}")
    if module.check_mode:
        told = f"not asked in check mode: {', '.join(names)}"
        module.exit_json(changed=False, results=[], summary=[told])
    try:
        api = Api(base, read_promise(promise).served_name)
    except Wrong as error:
        module.fail_json(msg=str(error))
    try:
        api.ask("/v1/models")
    except Wrong as error:
        module.fail_json(msg=f"nothing serves at {base}: {error}")
    results = [run_check(name, api, promise) for name in names]
    failed = [one for one in results if one["result"] == "failed"]
    if failed:
        lines = "\n".join(f"  {one['name']}: {one['text']}" for one in failed)
        module.fail_json(
            msg=f"{len(failed)} of {len(results)} checks failed:\n{lines}",
            results=results,
            summary=summary(results),
        )
    module.exit_json(changed=False, results=results, summary=summary(results))


if __name__ == "__main__":
    main()
