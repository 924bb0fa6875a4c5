#!/usr/bin/python
"""Ansible module: look at a prepared file of SPEED-Bench."""

from __future__ import annotations

DOCUMENTATION = r"""
module: speed_bench
short_description: Look at a prepared file of SPEED-Bench
description:
  - Fails for a file that AIPerf would not take, or that has the hub's placeholders in the place of its prompts, and says how
    to prepare it.
author: [The Twinserve developers]
options:
  path:
    description: The file, one JSON object a line.
    type: path
    required: true
attributes:
  check_mode: {support: full, description: Only reads.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Look at the prompts
  twinserve.pair.speed_bench:
    path: ~/speed-bench/qualitative.jsonl
  delegate_to: localhost
"""

RETURN = r"""
dataset:
  description: C(sha256) of the file, and how many C(rows) of the category coding it has.
  type: dict
  returned: success
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.benchmark.speed_bench import BadDataset, check

ARGUMENTS: dict[str, Any] = {"path": {"type": "path", "required": True}}


def main() -> None:
    """Read and judge."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    path = module.params["path"]
    try:
        module.exit_json(changed=False, dataset=check(Path(path).read_bytes()))
    except (BadDataset, OSError) as error:
        module.fail_json(msg=f"bench_dataset {path}: {error}")


if __name__ == "__main__":
    main()
