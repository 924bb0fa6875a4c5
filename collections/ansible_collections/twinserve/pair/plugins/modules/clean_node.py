#!/usr/bin/python
"""Ansible module: take away what Twinserve has put on a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: clean_node
short_description: Take away what Twinserve has put on a node
description:
  - Removes units, programs, configuration, state, logs and the system user. Weights, images and caches stay unless they
    are asked for.
  - Of weights only the snapshots go that were verified here, and of those no file that another snapshot in the cache uses.
    Of images those that ranks are started from, and those that Twinserve named.
  - One thing that cannot be taken away does not keep the others; it is named, and the module fails at the end.
  - What is on a file system that other machines use, and a folder for kept prompts, is named and stays.
  - Refuses while a rank, the supervisor or a job runs. It takes no link back, no key and no NFS mount; the role does that before.
author: [The Twinserve developers]
options:
  caches:
    description: Whether the folders go, too, that the engine's container wrote to (compiled kernels).
    type: bool
    default: false
  images:
    description: Whether the images go, too.
    type: bool
    default: false
  weights:
    description: Whether the weights go, too.
    type: bool
    default: false
  hf_home:
    description: The cache root of the login user. Those that the ranks were given are known from their plans.
    type: path
attributes:
  check_mode: {support: full, description: Lists what there is and what would go.}
  diff_mode: {support: full, description: Shows what goes.}
"""

EXAMPLES = r"""
- name: Clear the node and keep what takes long to come again
  twinserve.pair.clean_node:
    hf_home: /home/bob/.cache/huggingface
"""

RETURN = r"""
items:
  description: >-
    All that was there, each with C(kind) (installed, weights, images or caches), C(name), C(size) in bytes, C(goes),
    whether it was taken away, and C(stays), why it stays whatever was asked for.
  type: list
  elements: dict
  returned: always
running:
  description: What runs, so that nothing may be taken away, with what to do; empty when nothing does.
  type: str
  returned: in check mode
"""

from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import cleaning
from ..module_utils.shell import CommandError, run

ARGUMENTS: dict[str, Any] = {
    **{kind: {"type": "bool", "default": False} for kind in cleaning.ASKED},
    "hf_home": {"type": "path"},
}


def main() -> None:
    """Look, then predict or do."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    given = module.params
    try:
        running = cleaning.running() if module.check_mode else ""
        if not module.check_mode:
            cleaning.refuse_running()
        items = cleaning.find([given["hf_home"]] if given["hf_home"] else [])
        going = [
            item for item in items if not item.stays and (item.kind not in cleaning.ASKED or given[item.kind])
        ]
        faults = [] if module.check_mode else _remove(going)
    except (cleaning.Unclean, CommandError, OSError, ValueError) as error:
        module.fail_json(msg=f"this node is not clean: {error}")
    if faults:
        module.fail_json(msg="\n- ".join(["this node is not clean:", *faults]))
    before = "".join(f"{item.name}\n" for item in going)
    told = [{**asdict(item), "goes": item in going} for item in items]
    shown = {"running": running} if module.check_mode else {}
    module.exit_json(changed=bool(going), items=told, diff={"before": before, "after": ""}, **shown)


def _remove(going: list[cleaning.Item]) -> list[str]:
    faults = cleaning.remove_all(going)
    if any(item.how == "unit" for item in going):
        run(["systemctl", "daemon-reload"])
    return faults


if __name__ == "__main__":
    main()
