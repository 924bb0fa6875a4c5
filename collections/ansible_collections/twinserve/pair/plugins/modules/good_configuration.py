#!/usr/bin/python
"""Ansible module: keep a node's configuration after it has proved itself, or put a kept one back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: good_configuration
short_description: Keep a node's configuration, or put it back
description:
  - Two configurations are kept, each with its files and the runtime's version, the last one that was good and the
    one before it. All nodes of a pair keep a configuration under the same id.
author: [The Twinserve developers]
options:
  state:
    description:
      - V(kept) keeps O(paths) as they stand now.
      - V(restored) puts the files and the runtime of the configuration O(id) back. The pair must be stopped when they
        are not the same; units wait as long as a rank runs, since systemd would take the GPU from its container.
    type: str
    choices: [kept, restored]
    required: true
  id:
    description: Names the configuration.
    type: str
    required: true
  about:
    description: With V(state=kept), what there is to know of it; RV(about) returns it later.
    type: dict
    default: {}
  paths:
    description: With V(state=kept), the files that belong to it.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Compares and predicts.}
  diff_mode: {support: full, description: Shows the lines that change.}
"""

EXAMPLES = r"""
- name: Keep what was verified
  twinserve.pair.good_configuration:
    state: kept
    id: 0123456789ab
    about: {digest: "sha256:0123", runtime: 0123456789ab, nodes: [spark-a, spark-b]}
    paths: [/etc/twinserve/rank.json]
"""

RETURN = r"""
about:
  description: What is known of the configuration.
  type: dict
  returned: with state=restored
pair:
  description: The pair's configuration in the form in which the supervisor reads it; empty on workers.
  type: dict
  returned: with state=restored
"""

import json
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import good
from ..module_utils.managed_files import ETC, RUNTIME
from ..module_utils.runtime_archive import point_to
from ..module_utils.services import is_active, read_services
from ..module_utils.shell import CommandError, run

_PAIR = Path(ETC, "pair.json")
ARGUMENTS: dict[str, Any] = {
    "state": {"type": "str", "choices": ["kept", "restored"], "required": True},
    "id": {"type": "str", "required": True},
    "about": {"type": "dict", "default": {}},
    "paths": {"type": "list", "elements": "str", "default": []},
}


def main() -> None:
    """Keep, or compare and put back."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    given = module.params
    try:
        if given["state"] == "kept":
            if not module.check_mode:
                good.keep({**given["about"], "id": given["id"]}, given["paths"])
            module.exit_json(changed=True)
        module.exit_json(**_restored(given["id"], act=not module.check_mode))
    except (good.GoodError, CommandError, OSError, ValueError) as error:
        module.fail_json(msg=f"configuration {given['id']}: {error}")


def _restored(which: str, act: bool) -> dict[str, Any]:
    about, files = good.differing(which)
    runs = is_active(read_services().get("twinserve-rank.service", {}))
    files = [file for file in files if not (file.is_unit and runs)]
    link = Path(RUNTIME, "current")
    present = link.readlink().name if link.is_symlink() else "none"
    if not Path(RUNTIME, about["runtime"]).is_dir():
        raise good.GoodError(f"its runtime {about['runtime']} is no longer in {RUNTIME}")
    diff = [_diff(file) for file in files]
    if present != about["runtime"]:
        diff.append({"before": f"runtime: {present}\n", "after": f"runtime: {about['runtime']}\n"})
    if act:
        good.restore(files)
        if present != about["runtime"]:
            point_to(about["runtime"], Path(RUNTIME))
        if any(file.is_unit for file in files):
            run(["systemctl", "daemon-reload"])
    kept = next((file.content for file in files if file.path == _PAIR), None)
    text = kept if kept is not None else _PAIR.read_bytes() if str(_PAIR) in about["files"] else b"{}"
    return {"changed": bool(diff), "diff": diff, "about": about, "pair": json.loads(text)}


def _diff(file: good.File) -> dict[str, str]:
    path = str(file.path)
    before = file.path.read_text(errors="replace") if file.path.is_file() else ""
    return {
        "before": before,
        "before_header": path,
        "after": file.content.decode(errors="replace"),
        "after_header": path,
    }


if __name__ == "__main__":
    main()
