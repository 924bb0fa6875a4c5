#!/usr/bin/python
"""Ansible module: a node's logs and state as one archive, without secrets."""

from __future__ import annotations

DOCUMENTATION = r"""
module: diagnosis
short_description: Gather the logs and the state of a node
description:
  - Writes an archive with the logs of the rank, of the supervisor and of earlier starts, with plans, state, and what the
    system says of network, GPU, disks and kernel. Secrets are taken out, by their value where it is known, else by how
    they look.
  - The archive lies in a folder of its own below C(/var/tmp), which only the login user can read; remove it with
    O(state=absent) after it was fetched.
author: [The Twinserve developers]
options:
  state:
    description: V(present) gathers, V(absent) removes O(path).
    type: str
    choices: [present, absent]
    default: present
  name:
    description: Name of the folder in the archive.
    type: str
  path:
    description: With V(state=absent), the archive that RV(path) named.
    type: path
  hf_home:
    description: The cache root of the login user, where his login at the hub is.
    type: path
  secrets:
    description: Texts that must not be in the archive, beside those that the node knows itself.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Names what would be gathered.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Gather
  twinserve.pair.diagnosis:
    name: spark-a
  register: gathered
"""

RETURN = r"""
path:
  description: The archive.
  type: str
  returned: with state=present, not in check mode
files:
  description: What is in it, with C(name) and C(bytes); in check mode only C(name).
  type: list
  elements: dict
  returned: with state=present
tail:
  description: The last lines that the rank printed.
  type: list
  elements: str
  returned: with state=present
starts:
  description: The logs of starts that ended, which are kept on the node.
  type: list
  elements: str
  returned: with state=present
"""

import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import diagnosis
from ..module_utils.login_user import login_user
from ..module_utils.node_probe import Wanted, probe

_FOLDER, _PREFIX = Path("/var/tmp"), "twinserve-diagnosis-"  # noqa: S108  (mkdtemp makes a private folder)
# Of a run that was killed; another one may gather now.
_LEFT_S = 3600.0
ARGUMENTS: dict[str, Any] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "name": {"type": "str"},
    "path": {"type": "path"},
    "hf_home": {"type": "path"},
    "secrets": {"type": "list", "elements": "str", "default": [], "no_log": True},
}


def main() -> None:
    """Gather, name what would be, or remove."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
        required_if=[("state", "present", ["name"]), ("state", "absent", ["path"])],
    )
    given = module.params
    try:
        if given["state"] == "absent":
            _remove(module, Path(given["path"]))
        module.exit_json(changed=False, **_gather(given, act=not module.check_mode))
    except OSError as error:
        module.fail_json(msg=f"the logs cannot be gathered: {error}")


def _gather(given: dict[str, Any], act: bool) -> dict[str, Any]:
    name, user = given["name"], login_user()
    secrets = [*given["secrets"], *diagnosis.secrets_here(given["hf_home"])]
    parts = diagnosis.parts(_facts)
    told = {"tail": diagnosis.tail(secrets), "starts": [path.name for path in diagnosis.kept()]}
    if not act:
        return {**told, "files": [{"name": part.name} for part in parts]}
    _remove_left()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_FOLDER))
    try:
        archive = folder / f"{name}.tar.gz"
        files = diagnosis.write(archive, name, parts, secrets)
        # The login user fetches it, without root's help and so without reading it into memory.
        for path in (archive, folder):
            os.chown(path, user.uid, -1)
    except BaseException:  # raised again: on a disk that is full nobody needs half of it
        shutil.rmtree(folder)
        raise
    return {**told, "path": str(archive), "files": files}


def _remove_left() -> None:
    for folder in _FOLDER.glob(f"{_PREFIX}*"):
        if not folder.is_symlink() and folder.is_dir() and folder.stat().st_mtime < time.time() - _LEFT_S:
            shutil.rmtree(folder)


def _remove(module: AnsibleModule, archive: Path) -> None:
    folder = archive.parent
    if folder.parent != _FOLDER or not folder.name.startswith(_PREFIX):
        module.fail_json(msg=f"{archive} is no archive of this module")
    if folder.is_dir() and not module.check_mode:
        shutil.rmtree(folder)
    # It was made by the same run: nothing is different from before.
    module.exit_json(changed=False)


def _facts() -> dict[str, Any]:
    with ThreadPoolExecutor(max_workers=6) as pool:
        found: dict[str, Any] = probe(Wanted(), pool)
    return found


if __name__ == "__main__":
    main()
