#!/usr/bin/python
"""Ansible module: prove that each rail of this node carries full-size packets to its peers and has its GID."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_proof
short_description: Prove the rails of a node
description:
  - "For each rail: the device is active, has the RoCE v2 GID of the port's own IPv4 address, and reaches each peer with a
    ping of the full size that must not be fragmented, bound to the port."
  - Waits a little, since a GID and a route appear shortly after the address.
author: [The Twinserve developers]
options:
  rails:
    description: >-
      This node's rails, main rail first, each with C(netdev), C(hca), own C(address) with prefix length, C(mtu) in bytes,
      and C(peers), the addresses of the other ranks on this rail.
    type: list
    elements: dict
    required: true
  patience:
    description: Seconds until a rail that does not work is given up.
    type: float
    default: 10
attributes:
  check_mode: {support: full, description: Only looks.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Prove the rails
  twinserve.pair.rail_proof:
    rails:
      - {netdev: enp1s0f0np0, hca: rocep1s0f0, address: 192.168.177.1/24, mtu: 9000, peers: [192.168.177.2]}
"""

RETURN = r"""
rails:
  description: "Each rail with C(gid_index), and C(problem), empty when the rail is proved."
  type: list
  elements: dict
  returned: always
"""

import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.gids import describe, find_v2
from ..module_utils.reach import Target, reach
from ..module_utils.sysfs import Device, read_devices

ARGUMENTS: dict[str, Any] = {
    "rails": {"type": "list", "elements": "dict", "required": True},
    "patience": {"type": "float", "default": 10.0},
}


def main() -> None:
    """Look until all rails are proved or the patience ends."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
    )
    limit = time.monotonic() + module.params["patience"]
    while True:
        proved = prove(module.params["rails"], read_devices())
        if all(not rail["problem"] for rail in proved) or time.monotonic() > limit:
            break
        time.sleep(0.3)
    module.exit_json(changed=False, rails=proved)


def prove(rails: list[dict[str, Any]], devices: list[Device]) -> list[dict[str, Any]]:
    """Each rail with its GID index and what is wrong with it, if anything."""
    by_name = {device.hca: device for device in devices}
    proved = []
    for rail in rails:
        device = by_name.get(rail["hca"])
        gid = find_v2(device.gids, rail["address"]) if device else None
        problem = _gid_problem(rail, device) or _reach_problem(rail)
        proved.append({**rail, "gid_index": gid.index if gid else None, "problem": problem})
    return proved


def _gid_problem(rail: dict[str, Any], device: Device | None) -> str:
    if device is None:
        return f"RoCE device {rail['hca']} of {rail['netdev']} is gone"
    if not device.up:
        return f"{rail['hca']} is {device.state}, {rail['netdev']} is {device.operstate}"
    if find_v2(device.gids, rail["address"]) is None:
        own = rail["address"].split("/")[0]
        return f"{rail['hca']} has no RoCE v2 GID for {own} (found: {describe(device.gids)})"
    return ""


def _reach_problem(rail: dict[str, Any]) -> str:
    for answer in reach([Target(rail["netdev"], peer, rail["mtu"]) for peer in rail["peers"]]):
        if not answer.ok:
            return f"{rail['netdev']} (MTU {rail['mtu']}) does not reach {answer.target}: {answer.detail}"
    return ""


if __name__ == "__main__":
    main()
