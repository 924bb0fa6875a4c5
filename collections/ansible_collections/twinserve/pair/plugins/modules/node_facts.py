#!/usr/bin/python
"""Ansible module: everything that Twinserve's roles need to know of a node, in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_facts
short_description: Look at a node of a pair
description:
  - Reads everything that the roles of Twinserve need to know of a node, in one round trip, and changes nothing.
  - "A thing that cannot be read is reported with the reason under C(errors), so that a role that needs it can say so."
author: [The Twinserve developers]
options:
  hf_cache:
    description: Cache root that holds C(hub/); the login user's own C(HF_HOME) when it is not given. C(~) is his home.
    type: str
  kernel_cache:
    description: Folder for compiled kernels; C(~/.cache/twinserve) of the login user when it is not given.
    type: str
  images:
    description:
      - Names by which the image may be here, best C(repository@sha256:...) first. All that are here are reported as
        C(images), the first of them as C(image).
    type: list
    elements: str
    default: []
  snapshots:
    description: Model snapshots to look for.
    type: list
    elements: dict
    default: []
    suboptions:
      repo:
        description: Repository, C(organisation/name).
        type: str
        required: true
      revision:
        description: Commit, 40 hexadecimal digits.
        type: str
        required: true
  copied:
    description: Whether the snapshots come from another node, which is no download; that decides which parts count as here.
    type: bool
    default: false
  names:
    description: Names of hosts; what this node takes each for is reported as C(resolved), a list of IPv4 addresses.
    type: list
    elements: str
    default: []
  private:
    description: Folders that none but their owner may read, by setting; the mode of each that is here is reported.
    type: dict
    default: {}
attributes:
  check_mode: {support: full, description: Only reads.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Look at the node
  twinserve.pair.node_facts:
    images: [ghcr.io/example/engine@sha256:0123]
    snapshots:
      - repo: example/model
        revision: 9eaebb7c4e96d983dcd538e18624622ba5b820a8
"""

RETURN = r"""
ansible_facts:
  description: What was found.
  returned: always
  type: dict
  contains:
    twinserve_node:
      description: "Keys: hostname, architecture, kernel, python, user, kernel_cache, kernel_cache_is_there, tools, host_key, public_keys,
        authorized, runtime, hf, memory, devices, infiniband, lost_devices, network, resolved, docker, image, images, nfs, private, gpu,
        gpu_holders, gpu_process, clock, displays, files, firewall, services, listeners, state, rank_plan, good, held, gateway,
        pair_config, disk, errors."
      type: dict
      returned: always
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node_probe import Wanted, probe

ARGUMENTS: dict[str, Any] = {
    "hf_cache": {"type": "str"},
    "kernel_cache": {"type": "str"},
    "images": {"type": "list", "elements": "str", "default": []},
    "snapshots": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "repo": {"type": "str", "required": True},
            "revision": {"type": "str", "required": True},
        },
    },
    "copied": {"type": "bool", "default": False},
    "names": {"type": "list", "elements": "str", "default": []},
    "private": {"type": "dict", "default": {}},
}


def main() -> None:
    """Read the options, probe, report."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
    )
    wanted = Wanted(
        hf_cache=module.params["hf_cache"],
        kernel_cache=module.params["kernel_cache"],
        images=tuple(module.params["images"]),
        snapshots=tuple((one["repo"], one["revision"]) for one in module.params["snapshots"]),
        copied=module.params["copied"],
        names=tuple(module.params["names"]),
        private=module.params["private"],
    )
    with ThreadPoolExecutor(max_workers=6) as pool:
        facts: dict[str, Any] = probe(wanted, pool)
    module.exit_json(changed=False, ansible_facts={"twinserve_node": facts})


if __name__ == "__main__":
    main()
