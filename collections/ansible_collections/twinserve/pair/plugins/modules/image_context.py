#!/usr/bin/python
"""Ansible module: the folder that the engine's image is built from."""

from __future__ import annotations

DOCUMENTATION = r"""
module: image_context
short_description: Make the folder that an image is built from
description:
  - Clones each source at its pinned commit and verifies that it is that commit, writes the Dockerfile and what else the
    recipe has, and computes the hash over the patches, which becomes a label of the image.
  - Each call makes a folder of its own. Who builds from it removes it; what a broken run left goes a day later.
author: [The Twinserve developers]
options:
  path:
    description: Where the folder is made; with C(present=false) the folder itself.
    type: path
    required: true
  clones:
    description: What is cloned, by the name of its folder, each as C(URL@COMMIT).
    type: dict
    default: {}
  files:
    description: What is written, by name.
    type: dict
    default: {}
  patches:
    description: Which of what was cloned as C(patches) are patches. Only those stay.
    type: dict
    suboptions:
      folder:
        description: Folder of the patches in its source.
        type: str
        required: true
      extras:
        description: Packages that the image gets besides, in one text, which is a part of the hash.
        type: str
        required: true
      hash:
        description: The hash that they must have, 12 hexadecimal digits; nothing is compared when it is not given.
        type: str
  proxies:
    description: Proxy variables for the clones (C(https_proxy), C(no_proxy)); a password in one is kept out of logs.
    type: dict
    default: {}
  job:
    description: The job that builds from it; while it runs, the folder is not removed.
    type: str
  present:
    description: C(false) removes the folder.
    type: bool
    default: true
attributes:
  check_mode: {support: full, description: Says that there would be a build; nothing is cloned.}
  diff_mode: {support: none, description: What is cloned is not known before.}
"""

EXAMPLES = r"""
- name: Make the folder to build from
  twinserve.pair.image_context:
    path: /var/lib/twinserve/build
    clones:
      engine: https://git.example/engine.git@9cd52ab4daba68ddd09be89be8f23ad43175e821
      patches: https://git.example/recipe.git@1f3d909b00b7be7aa8f00d3a33e0b9e7aa56d221
    files: {Dockerfile: "FROM example/base\n"}
    patches: {folder: patches, extras: av==18.1.0}
"""

RETURN = r"""
path:
  description: The folder that was made.
  type: str
  returned: when it was made
patches_hash:
  description: Hash over the patches and the extras, 12 hexadecimal digits.
  type: str
  returned: with patches, when the folder was made
"""

import shutil
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import build_context, jobs
from ..module_utils.image_recipe import RecipeError
from ..module_utils.shell import CommandError

ARGUMENTS: dict[str, Any] = {
    "path": {"type": "path", "required": True},
    "clones": {"type": "dict", "default": {}},
    "files": {"type": "dict", "default": {}},
    "patches": {
        "type": "dict",
        "options": {
            "folder": {"type": "str", "required": True},
            "extras": {"type": "str", "required": True},
            "hash": {"type": "str"},
        },
    },
    "proxies": {"type": "dict", "default": {}, "no_log": True},
    "job": {"type": "str"},
    "present": {"type": "bool", "default": True},
}


def main() -> None:
    """Predict or do."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    given, path = module.params, Path(module.params["path"])
    if not given["present"]:
        gone = path.exists() and not (given["job"] and jobs.read(given["job"]).status == "running")
        if gone and not module.check_mode:
            shutil.rmtree(path)
        module.exit_json(changed=gone)
    if module.check_mode:
        module.exit_json(changed=True)
    try:
        folder, found = build_context.make(
            path, given["clones"], given["files"], given["patches"], _texts(given["proxies"])
        )
    except (CommandError, RecipeError, OSError) as error:
        module.fail_json(msg=f"the image cannot be built: {error}")
    module.exit_json(changed=True, path=str(folder), **({"patches_hash": found} if found else {}))


def _texts(values: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value}


if __name__ == "__main__":
    main()
