#!/usr/bin/python
"""Ansible module: the head's ssh keys for its workers."""

from __future__ import annotations

DOCUMENTATION = r"""
module: head_keys
short_description: Make, replace and remove the head's ssh keys
description:
  - Each key is a pair of files below C(path). A key that is replaced has its successor beside it, in C(NAME.next).
  - Each step may be interrupted and taken again; there is a usable key at every moment.
author: [The Twinserve developers]
options:
  path:
    description: Folder of the keys.
    type: path
    default: /etc/twinserve/keys
  known_hosts:
    description: File with the workers' host keys; only removed here.
    type: path
    default: /etc/twinserve/known_hosts
  make:
    description: Keys to make, those that are there already are left alone.
    type: list
    elements: str
    default: []
  promote:
    description: Keys whose successor takes their place, with the successor's type and public key.
    type: dict
    default: {}
  drop:
    description: Keys whose successor has taken their place, and whose other copy goes.
    type: list
    elements: str
    default: []
  state:
    description: C(absent) removes all keys, the known hosts, and the folder around them when nothing else is in it.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode: {support: full, description: Reports what would be done.}
  diff_mode: {support: full, description: Shows names of files and public keys, never a private key.}
"""

EXAMPLES = r"""
- name: Make the keys
  twinserve.pair.head_keys:
    make: [control, copy, image]
"""

RETURN = r""" # """

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import key_files
from ..module_utils.shell import CommandError

ARGUMENTS: dict[str, Any] = {
    "path": {"type": "path", "default": "/etc/twinserve/keys"},
    "known_hosts": {"type": "path", "default": "/etc/twinserve/known_hosts"},
    "make": {"type": "list", "elements": "str", "default": []},
    "promote": {"type": "dict", "default": {}},
    "drop": {"type": "list", "elements": "str", "default": []},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def main() -> None:
    """Predict or do, and show the public halves before and after."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    given, folder, known = module.params, Path(module.params["path"]), Path(module.params["known_hosts"])
    try:
        before = key_files.read(folder)
        if given["state"] == "absent":
            found = [str(path) for path in (folder, known) if path.exists()]
            if not module.check_mode:
                key_files.remove(folder, known)
            module.exit_json(changed=bool(found), diff=_diff(found, []))
        planned = _planned(before, given)
        if module.check_mode or not planned:
            module.exit_json(changed=bool(planned), diff=_diff([], planned))
        done = [key_files.make(folder, name) for name in given["make"]]
        done += [key_files.promote(folder, name, key) for name, key in given["promote"].items()]
        done += [key_files.drop(folder, name) for name in given["drop"]]
        after = key_files.read(folder)
        module.exit_json(changed=any(done), diff=_diff(_shown(before), _shown(after)))
    except (CommandError, key_files.KeysChanged, OSError) as error:
        module.fail_json(msg=f"the head's keys: {error}")


def _planned(present: dict[str, str | None], given: dict[str, Any]) -> list[str]:
    """What would be done, in words."""
    lines = [f"make {name}" for name in given["make"] if not present.get(name)]
    lines += [f"replace {name}" for name, key in given["promote"].items() if present.get(name) != key]
    return lines + [f"remove the old {name}" for name in given["drop"]]


def _shown(keys: dict[str, str | None]) -> list[str]:
    return [f"{name} {key}" for name, key in keys.items() if key]


def _diff(before: list[str], after: list[str]) -> dict[str, str]:
    return {
        key: "".join(f"{line}\n" for line in lines) for key, lines in (("before", before), ("after", after))
    }


if __name__ == "__main__":
    main()
