#!/usr/bin/python
"""Ansible module: ask the hub whether snapshots may be downloaded."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hub_access
short_description: Ask the hub whether model snapshots may be downloaded
description:
  - Asks for one small file of each snapshot, with the token that the download will use, and for the list of its files.
    Changes nothing.
  - Fails with the reason when the hub refuses one, before hours of other work are done.
author: [The Twinserve developers]
options:
  snapshots:
    description: What is to be downloaded.
    type: list
    elements: dict
    required: true
    suboptions:
      repo:
        description: Repository, C(organisation/name).
        type: str
        required: true
      revision:
        description: Commit.
        type: str
        required: true
  hf_home:
    description: Cache root that holds C(hub/). For what is whole there nothing is asked.
    type: path
    required: true
  bundle:
    description: Folder that has the snapshots, as in a Hugging Face cache; then it is looked at, and the hub is not asked.
    type: path
  always:
    description: Ask also for what is whole, since it will be fetched again.
    type: bool
    default: false
  endpoint:
    description: The hub's address; the public one when it is not given.
    type: str
  token:
    description: Token for gated repositories; without it the login that lies in the cache root, as the client does.
    type: str
  proxies:
    description: Proxy variables, C(https_proxy) and such.
    type: dict
    default: {}
attributes:
  check_mode: {support: full, description: Only asks.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Ask the hub
  twinserve.pair.hub_access:
    hf_home: /home/nvidia/.cache/huggingface
    snapshots:
      - repo: example/model
        revision: 9eaebb7c4e96d983dcd538e18624622ba5b820a8
"""

RETURN = r"""
lists:
  description: "Size by etag of each snapshot (C(repo@revision)) whose list could be read, here or from the hub."
  type: dict
  returned: success
notes:
  description:
    - What is to be kept on the node when a download begins, since not every client keeps the hub's list. C(path) and
      C(content) of a file for each list that was read from the hub.
  type: list
  elements: dict
  returned: success
silent:
  description: Snapshots for which the hub did not answer.
  type: list
  elements: str
  returned: success
fault:
  description: Why the hub did not answer, when what is here does not do; empty when all is well.
  type: str
  returned: success
"""

import json
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import hf_blobs, hf_cache, hub_access

ARGUMENTS: dict[str, Any] = {
    "snapshots": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "repo": {"type": "str", "required": True},
            "revision": {"type": "str", "required": True},
        },
    },
    "hf_home": {"type": "path", "required": True},
    "bundle": {"type": "path"},
    "always": {"type": "bool", "default": False},
    "endpoint": {"type": "str"},
    "token": {"type": "str", "no_log": True},
    "proxies": {"type": "dict", "default": {}, "no_log": True},
}


def main() -> None:
    """Ask for each, tell all that is refused."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    asking = _Asking(module.params)
    for one in module.params["snapshots"]:
        asking.ask(one["repo"], one["revision"])
    for text in asking.warnings:
        module.warn(text)
    if asking.refused:
        module.fail_json(msg="; ".join(dict.fromkeys(asking.refused)))
    fault = "; ".join(dict.fromkeys(asking.faults))
    module.exit_json(changed=False, lists=asking.lists, notes=asking.notes, silent=asking.silent, fault=fault)


class _Asking:
    """What the hub says of one snapshot after the other."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._home, self._always, self._bundle = given["hf_home"], given["always"], given["bundle"]
        self._endpoint, login = given["endpoint"], Path(given["hf_home"], "token")
        self._token, self._whose = given["token"] or "", "hf_token"
        if not self._token and login.is_file():
            self._token, self._whose = login.read_text().strip(), str(login)
        self._proxies = {name: str(value or "") for name, value in given["proxies"].items()}
        self.lists: dict[str, dict[str, int]] = {}
        self.notes: list[dict[str, str]] = []
        self.silent: list[str] = []
        self.refused: list[str] = []
        self.faults: list[str] = []
        self.warnings: list[str] = []

    def ask(self, repo: str, revision: str) -> None:
        """Ask about one snapshot; what is whole here needs no hub, unless it is to be fetched again."""
        name, here = f"{repo}@{revision}", _list_here(self._home, repo, revision)
        if here:
            self.lists[name] = here
        whole = hf_cache.snapshot_state(self._home, repo, revision).complete
        if whole and not self._always:
            return
        if self._bundle:
            self._look_at_bundle(name, repo, revision)
            return
        try:
            url = hub_access.address(self._endpoint, repo, revision)
            status, code = hub_access.ask(url, self._token, self._proxies)
            verdict = hub_access.verdict(status, code, repo, revision, self._whose if self._token else "")
            if verdict:
                self.refused.append(verdict)
            elif not here:
                self._read_list(name, repo, revision)
        except OSError as error:
            self._no_answer(name, repo, revision, str(error))

    def _look_at_bundle(self, name: str, repo: str, revision: str) -> None:
        lacking, _ = hf_cache.lacking(self._bundle, repo, revision)
        if lacking:
            self.faults.append(f"bundle {self._bundle} lacks {len(lacking)} files of {name} ({lacking[0]})")
        elif listed := _list_here(self._bundle, repo, revision):
            self.lists[name] = listed

    def _no_answer(self, name: str, repo: str, revision: str, reason: str) -> None:
        """Good enough is a snapshot that is here; it is looked at again before it is used."""
        self.silent.append(name)
        if hf_cache.lacking(self._home, repo, revision)[0]:
            self.faults.append(f"no answer from {self._endpoint or hub_access.PUBLIC}: {reason}")
        else:
            self.warnings.append(
                f"Hugging Face not reachable: using the snapshot already here ({revision[:8]})"
            )

    def _read_list(self, name: str, repo: str, revision: str) -> None:
        try:
            found = hub_access.read_list(self._endpoint, repo, revision, self._token, self._proxies)
        except OSError as error:
            self.warnings.append(f"could not ask the Hub what is missing: {error}")
        else:
            self.lists[name] = hf_blobs.by_etag(found)
            if found:
                path, content = hf_cache.list_note(repo, revision, found)
                self.notes.append({"path": str(path), "content": content})


def _list_here(home: str, repo: str, revision: str) -> dict[str, int] | None:
    """Size by etag from what is noted on this node: the hub's list, else our manifest."""
    try:
        if listed := hf_cache.hub_list(home, repo, revision):
            return hf_blobs.by_etag(listed)
        manifest = json.loads(hf_cache.manifest_path(repo, revision).read_text())
        return {
            digest.partition(":")[2]: manifest["files"][path] for path, digest in manifest["digests"].items()
        }
    except (OSError, ValueError, KeyError):
        return None  # the hub has it


if __name__ == "__main__":
    main()
