#!/usr/bin/python
"""Ansible module: verify a downloaded model snapshot and note what it holds."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hf_snapshot
short_description: Verify a model snapshot in a Hugging Face cache
description:
  - The download program says success even for content that is wrong, and for some downloads that are incomplete.
  - Checks that each file is there with its size, then writes a manifest on the node.
  - A snapshot counts as whole on a node only with such a manifest; one that is not whole loses it.
  - Before a manifest is noted, the files are put on disk for good and dropped from the kernel's memory.
author: [The Twinserve developers]
options:
  hf_home:
    description: Cache root that holds C(hub/).
    type: path
    required: true
  repo:
    description: Repository, C(organisation/name).
    type: str
    required: true
  revision:
    description: Commit.
    type: str
    required: true
  expected:
    description:
      - Manifest of the node that the files came from. Without it, the hub's own list that the download left is used,
        else what is on disk.
    type: dict
  compare:
    description: Only say in C(wrong) what differs from C(expected). Then nothing fails, and nothing is noted.
    type: bool
    default: false
  list_for:
    description: Host for which a list of the snapshot's blobs and links is left below C(/run/twinserve/copy), for rsync.
    type: str
  checks:
    description:
      - What the model must be beside whole. C(shards) is their number; C(config) entries of C(config.json), where a dot
        leads one level down.
    type: dict
    default: {}
  readable:
    description: Also read one byte of each file, as root does in a rank's container; for weights that are shared by NFS.
    type: bool
    default: false
attributes:
  check_mode: {support: full, description: Verifies and does not write the manifest.}
  diff_mode: {support: none, description: The manifest only repeats what is on disk.}
"""

EXAMPLES = r"""
- name: Verify the model
  twinserve.pair.hf_snapshot:
    hf_home: /home/nvidia/.cache/huggingface
    repo: example/model
    revision: 9eaebb7c4e96d983dcd538e18624622ba5b820a8
"""

RETURN = r"""
wrong:
  description: What is missing or has another size, one entry a file.
  type: list
  elements: str
  returned: with C(compare), and when it is the reason of a failure
manifest:
  description: "C(files): size by path; C(digests): hash by path, where the hub names one."
  type: dict
  returned: success
size:
  description: Bytes in all.
  type: int
  returned: success
"""

import json
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import atomic_file, hf_cache, model_checks, shared_weights
from ..module_utils.model_transfer import list_file
from ..module_utils.settling import settle

ARGUMENTS: dict[str, Any] = {
    "hf_home": {"type": "path", "required": True},
    "repo": {"type": "str", "required": True},
    "revision": {"type": "str", "required": True},
    "expected": {"type": "dict"},
    "list_for": {"type": "str"},
    "checks": {"type": "dict", "default": {}},
    "readable": {"type": "bool", "default": False},
    "compare": {"type": "bool", "default": False},
}


def main() -> None:
    """Verify, then note."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
    )
    given = module.params
    home, repo, revision = given["hf_home"], given["repo"], given["revision"]
    snapshot = hf_cache.snapshot_folder(home, repo, revision)
    noted = hf_cache.manifest_path(repo, revision)
    try:
        manifest = given["expected"] or hf_cache.manifest_from_disk(home, repo, revision)
        wrong = hf_cache.differences(snapshot, manifest["files"])
        if given["compare"]:
            module.exit_json(changed=False, wrong=wrong)
        if not wrong and not given["expected"] and not hf_cache.hub_list(home, repo, revision):
            # What is on disk is all that we know: files that are not linked yet would not be missed.
            wrong = [f"{name} is unfinished" for name in hf_cache.unfinished(home, repo)]
        other = [] if wrong else model_checks.faults(snapshot, manifest["files"], given["checks"])
        if given["readable"] and not wrong:
            other += shared_weights.unreadable(snapshot, manifest["files"])
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"{repo}@{revision[:8]} cannot be verified: {error}")
    if (wrong or other or not manifest["files"]) and not module.check_mode:
        noted.unlink(missing_ok=True)
    if other:
        module.fail_json(msg=f"{repo}@{revision[:8]}: {'; '.join(other[:3])}", wrong=other)
    if wrong or not manifest["files"]:
        names = "; ".join(wrong[:3]) or "no file at all"
        count = f"{len(wrong)} of {len(manifest['files'])} files"
        module.fail_json(msg=f"{repo}@{revision[:8]} incomplete: {count} ({names})", wrong=wrong)
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    changed = not noted.is_file() or noted.read_text() != text
    # What is mounted from the head is on its disk, and not ours to write to.
    if (given["expected"] or changed) and not given["readable"] and not module.check_mode:
        settle(home, snapshot)  # before the manifest says that it is whole
    if changed and not module.check_mode:
        noted.parent.mkdir(parents=True, exist_ok=True)
        atomic_file.replace(noted, text.encode(), 0o644)
    if given["list_for"] and not module.check_mode:
        _note_list(snapshot, list_file(repo, revision, given["list_for"]))
    module.exit_json(changed=changed, manifest=manifest, size=sum(manifest["files"].values()))


def _note_list(snapshot: Path, target: str) -> None:
    """Blobs first, links last: a link never points to what is not there yet."""
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{name}\n" for name in hf_cache.transfer_list(snapshot))
    atomic_file.replace(path, text.encode("utf-8", "surrogateescape"), 0o644)


if __name__ == "__main__":
    main()
