#!/usr/bin/python
"""Ansible module: put Twinserve's runtime on a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: runtime
short_description: Put Twinserve's runtime on a node
description:
  - The runtime is a small Python package without dependencies. Each version has its own folder; C(current) points to one.
  - What runs keeps running from the version that it was started from. Older versions go, but for those of
    configurations that are kept to go back to.
author: [The Twinserve developers]
options:
  version:
    description: Version, derived from the content; filled in by the action.
    type: str
  archive:
    description: Zip of the package, base64; filled in by the action.
    type: str
  path:
    description: Where the versions live.
    type: path
    default: /usr/local/lib/twinserve
  activate:
    description: Whether C(current) shall point to it; without, it is only there for programs that are named with its version.
    type: bool
    default: true
attributes:
  check_mode: {support: full, description: Compares the version.}
  diff_mode: {support: full, description: Shows the versions.}
"""

EXAMPLES = r"""
- name: Install the runtime
  twinserve.pair.runtime:
  become: true

- name: Install it beside the one that is used
  twinserve.pair.runtime:
    activate: false
  become: true
"""

RETURN = r"""
removed:
  description: Old versions that were removed.
  type: list
  elements: str
  returned: changed
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.good import read_good
from ..module_utils.runtime_archive import install, prune

ARGUMENTS: dict[str, Any] = {
    "version": {"type": "str"},
    # Not a secret: kept out of logs for its length.
    "archive": {"type": "str", "no_log": True},
    "path": {"type": "path", "default": "/usr/local/lib/twinserve"},
    "activate": {"type": "bool", "default": True},
}


def main() -> None:
    """Compare, then predict or do."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
    )
    root, version = Path(module.params["path"]), module.params["version"]
    link = root / "current"
    before = link.readlink().name if link.is_symlink() else "none"
    activate = module.params["activate"]
    changed = before != version if activate else not (root / version).is_dir()
    diff = {"before": f"runtime: {before}\n", "after": f"runtime: {version}\n"}
    removed: list[str] = []
    if changed and not module.check_mode:
        install(module.params["archive"], version, root, activate)
        removed = prune(root, needed=[one["runtime"] for one in read_good()])
    module.exit_json(changed=changed, diff=diff, removed=removed)


if __name__ == "__main__":
    main()
