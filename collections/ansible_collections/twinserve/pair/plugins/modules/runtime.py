#!/usr/bin/python
"""Ansible module: put Twinserve's runtime on a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: runtime
short_description: Put Twinserve's runtime on a node
description:
  - The runtime is a small Python package without dependencies. Each version has its own folder; C(current) points to one.
  - What runs keeps running from the version that it was started from.
author: [The Twinserve developers]
options:
  version:
    description: Version, derived from the content.
    type: str
    required: true
  archive:
    description: Zip of the package, base64.
    type: str
    required: true
  path:
    description: Where the versions live.
    type: path
    default: /usr/local/lib/twinserve
  current:
    description:
      - Whether the units and the control key use this version from now on.
      - A version that is only put beside the current one serves a job that names its folder.
    type: bool
    default: true
attributes:
  check_mode: {support: full, description: Compares the version.}
  diff_mode: {support: full, description: Shows the versions.}
"""

EXAMPLES = r"""
- name: Install the runtime
  twinserve.pair.runtime: "{{ twinserve_runtime }}"
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

from ..module_utils.runtime_archive import install, prune, unpack

ARGUMENTS: dict[str, Any] = {
    "version": {"type": "str", "required": True},
    # Not a secret: kept out of logs for its length.
    "archive": {"type": "str", "required": True, "no_log": True},
    "path": {"type": "path", "default": "/usr/local/lib/twinserve"},
    "current": {"type": "bool", "default": True},
}


def main() -> None:
    """Compare, then predict or do."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
    )
    given = module.params
    root, version, current = Path(given["path"]), given["version"], given["current"]
    before = _before(root, version, current)
    changed = before != version
    what = "runtime" if current else "runtime beside the current one"
    diff = {"before": f"{what}: {before}\n", "after": f"{what}: {version}\n"}
    removed: list[str] = []
    if changed and not module.check_mode:
        if current:
            install(given["archive"], version, root)
            removed = prune(root)
        else:
            unpack(given["archive"], version, root)
    module.exit_json(changed=changed, diff=diff, removed=removed)


def _before(root: Path, version: str, current: bool) -> str:
    """The version that is there: the current one, or this one whatever is current."""
    if not current:
        return version if (root / version).is_dir() else "none"
    link = root / "current"
    return link.readlink().name if link.is_symlink() else "none"


if __name__ == "__main__":
    main()
