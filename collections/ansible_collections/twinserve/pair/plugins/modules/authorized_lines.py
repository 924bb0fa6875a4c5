#!/usr/bin/python
"""Ansible module: our lines in a user's authorized_keys, and no trace of them afterwards."""

from __future__ import annotations

DOCUMENTATION = r"""
module: authorized_lines
short_description: Keep exactly the given lines of ours in an authorized_keys file
description:
  - Ours are the lines whose comment is one of C(marks). Those that are wanted are added, the others of ours go.
  - All other bytes of the file stay as they are. What was there before is recorded on the node. With no lines
    wanted the file is what it was before, also when it was not there or had no newline at its end, unless its
    user changed it in between.
author: [The Twinserve developers]
options:
  path:
    description: The file.
    type: path
    required: true
  owner:
    description: Whose file it is, when it has to be made.
    type: str
    required: true
  marks:
    description: The comments of our lines, all that there may be in this file.
    type: list
    elements: str
    required: true
  lines:
    description: Our lines, options included; none to take all of ours away.
    type: list
    elements: str
    default: []
  record:
    description: Where to note what was there before.
    type: path
    default: /var/lib/twinserve/trust/authorized.json
attributes:
  check_mode: {support: full, description: Reports the change and leaves the file alone.}
  diff_mode: {support: full, description: Shows our lines only.}
"""

EXAMPLES = r"""
- name: Let the head copy to this worker
  twinserve.pair.authorized_lines:
    path: /home/bob/.ssh/authorized_keys
    owner: bob
    marks: [twinserve-copy]
    lines: ['restrict,command="rrsync -no-lock -wo /home/bob/.cache/huggingface" ssh-ed25519 AAAA twinserve-copy']
"""

RETURN = r""" # """

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import authorized_file

ARGUMENTS: dict[str, Any] = {
    "path": {"type": "path", "required": True},
    "owner": {"type": "str", "required": True},
    "marks": {"type": "list", "elements": "str", "required": True},
    "lines": {"type": "list", "elements": "str", "default": []},
    "record": {"type": "path", "default": "/var/lib/twinserve/trust/authorized.json"},
}


def main() -> None:
    """Compare, then predict or do."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    given = module.params
    path, record = Path(given["path"]), Path(given["record"])
    try:
        if module.check_mode:
            change = authorized_file.plan(path, given["marks"], given["lines"], record)
        else:
            change = authorized_file.apply(path, given["owner"], given["marks"], given["lines"], record)
    except KeyError:
        module.fail_json(msg=f"{path}: there is no user {given['owner']}")
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"{path}: {error}")
    sides = {"before": change.before, "after": change.after}
    diff = {
        name: "".join(f"{line}\n" for line in authorized_file.our_lines(content or b"", *given["marks"]))
        for name, content in sides.items()
    }
    module.exit_json(
        changed=change.needed, diff={**diff, "before_header": str(path), "after_header": str(path)}
    )


if __name__ == "__main__":
    main()
