#!/usr/bin/python
"""Ansible module: prove that each rail of this node carries full-size packets to its peers and has its GID."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_proof
short_description: Prove the rails of a node
description:
  - "For each rail: the port has carrier and the MTU that was planned, the device is active and has the RoCE v2 GID of the
    port's own IPv4 address, and each peer answers several pings of the full size that must not be fragmented, bound to the
    port. Each node proves its own direction, so run it on all of them."
  - Where a second port is in the rail's subnet, the peer may answer a ping through either; then ARP requests of the full size
    are sent to the peer's port, which it answers itself.
  - "A port that is slower than expected, and an error counter that rose meanwhile, are warnings. A speed that the driver does
    not tell is not judged."
  - Waits a little, since a GID and a route appear shortly after the address.
author: [The Twinserve developers]
options:
  rails:
    description: >-
      This node's rails, main rail first, each with C(rail) (its number), C(netdev), C(hca), own C(address) with prefix length,
      C(mtu) in bytes, and C(peers), the addresses of the other ranks on this rail. C(shares_subnet) true says that a node of
      the rail has a second port in its subnet; C(macs) then has the Ethernet address of each peer's port, by peer.
    type: list
    elements: dict
    required: true
  expected_speed:
    description: The speed in Gb/s below which a port is warned of; left out, none is judged.
    type: int
  patience:
    description: Seconds until a rail that does not work is given up.
    type: float
    default: 10
attributes:
  check_mode: {support: full, description: Only looks; sends the same packets.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Prove the rails
  twinserve.pair.rail_proof:
    rails:
      - {rail: 0, netdev: enp1s0f0np0, hca: rocep1s0f0, address: 192.168.177.1/24, mtu: 9000, peers: [192.168.177.2]}
    expected_speed: 200
"""

RETURN = r"""
rails:
  description: Each rail as it was given, and what was found.
  type: list
  elements: dict
  returned: always
  contains:
    gid_index: {description: "Index of the port's RoCE v2 GID, or null.", type: int, returned: always}
    problem: {description: Why the rail is not proved; empty when it is., type: str, returned: always}
    warnings: {description: What does not keep it from being used., type: list, elements: str, returned: always}
    measured:
      description: What was measured; null where the device is gone or the driver does not tell.
      type: dict
      returned: always
      contains:
        state: {description: "State of the RDMA port, C(ACTIVE) when it is usable.", type: str, returned: always}
        carrier: {description: Whether the cable has a live other end., type: bool, returned: always}
        speed: {description: Speed of the port in Gb/s., type: float, returned: always}
        mtu: {description: MTU of the port in bytes., type: int, returned: always}
        sent: {description: "What was sent, such as C(8972 bytes) or C(9000 bytes by ARP).", type: str, returned: always}
        reached:
          description: "Each peer that was tried: C(target), C(ok), C(detail)."
          type: list
          elements: dict
          returned: always
        counters: {description: Error counters afterwards., type: dict, returned: always}
        risen: {description: By how much error counters rose during the proof., type: dict, returned: always}
"""

import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.counters import describe, read_counters, rise
from ..module_utils.gids import find_v2
from ..module_utils.port_check import gid_problem, port_problem
from ..module_utils.reach import Reached, Target, payload, reach
from ..module_utils.sysfs import Device, port_folder, read_devices

ARGUMENTS: dict[str, Any] = {
    "rails": {"type": "list", "elements": "dict", "required": True},
    "expected_speed": {"type": "int"},
    "patience": {"type": "float", "default": 10.0},
}


def main() -> None:
    """Look until all rails are proved or the patience ends."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
    )
    rails, expected = module.params["rails"], module.params["expected_speed"]
    before = [count(rail["hca"]) for rail in rails]
    limit = time.monotonic() + module.params["patience"]
    while True:
        proved = prove(rails, read_devices(), expected)
        if all(not rail["problem"] for rail in proved) or time.monotonic() > limit:
            break
        time.sleep(0.3)
    for rail, earlier in zip(proved, before, strict=True):
        add_counters(rail, earlier, count(rail["hca"]))
    module.exit_json(changed=False, rails=proved)


def prove(rails: list[dict[str, Any]], devices: list[Device], expected: int | None) -> list[dict[str, Any]]:
    """Each rail with its GID index, what is wrong with it, if anything, and what was measured."""
    by_name = {device.hca: device for device in devices}
    return [_prove(rail, by_name.get(rail["hca"]), expected) for rail in rails]


def _prove(rail: dict[str, Any], device: Device | None, expected: int | None) -> dict[str, Any]:
    gid = find_v2(device.gids, rail["address"]) if device else None
    problem = _end_problem(rail, device)
    reached = [] if problem else reach(_targets(rail))
    lost = next((answer for answer in reached if not answer.ok), None)
    return {
        **rail,
        "gid_index": gid.index if gid else None,
        "problem": problem or (_lost(rail, lost) if lost else ""),
        "warnings": _speed_warnings(rail, device, expected),
        "measured": {
            "state": device and device.state,
            "carrier": device and device.carrier,
            "speed": _speed(device),
            "mtu": device and device.mtu,
            "sent": payload(_targets(rail)),
            "reached": [{"target": one.target, "ok": one.ok, "detail": one.detail} for one in reached],
        },
    }


def _end_problem(rail: dict[str, Any], device: Device | None) -> str | None:
    if (problem := port_problem(rail["hca"], rail["netdev"], device)) or device is None:
        return problem
    if device.mtu != rail["mtu"]:
        return f"{rail['netdev']} has MTU {device.mtu}, not {rail['mtu']}"
    return gid_problem(device, rail["address"])


def _targets(rail: dict[str, Any]) -> list[Target]:
    plain = [(rail["netdev"], peer, rail["mtu"]) for peer in rail["peers"]]
    if not rail.get("shares_subnet"):
        return [Target(*one) for one in plain]
    own, macs = rail["address"].partition("/")[0], rail.get("macs") or {}
    return [Target(*one, arp_from=own, mac=macs.get(one[1], "")) for one in plain]


def _lost(rail: dict[str, Any], answer: Reached) -> str:
    return f"{rail['netdev']} (MTU {rail['mtu']}) does not reach {answer.target}: {answer.detail}"


def _speed(device: Device | None) -> float | None:
    return device.speed / 1000 if device and device.speed else None


def _speed_warnings(rail: dict[str, Any], device: Device | None, expected: int | None) -> list[str]:
    speed = _speed(device)
    if speed is None or expected is None or speed >= expected:
        return []
    return [f"{rail['netdev']} runs at {speed:g} Gb/s, {expected} are expected (fabric_speed)"]


def count(hca: str) -> dict[str, int]:
    """The device's error counters; none when it is gone."""
    port = port_folder(Path("/"), hca)
    return read_counters(port) if port else {}


def add_counters(rail: dict[str, Any], before: dict[str, int], after: dict[str, int]) -> None:
    """Add the counters to a proof, and a warning for each that rose."""
    rose = rise(before, after)
    rail["measured"] |= {"counters": after, "risen": rose}
    rail["warnings"] += [f"{rail['hca']} {text} during the proof" for text in describe(rose)]


if __name__ == "__main__":
    main()
