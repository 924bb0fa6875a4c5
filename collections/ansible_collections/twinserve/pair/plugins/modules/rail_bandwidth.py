#!/usr/bin/python
"""Ansible module: measure what rails move, with ib_write_bw between two nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_bandwidth
short_description: Measure the bandwidth of rails
description:
  - "Measures with C(ib_write_bw) of perftest, one RDMA write stream a run, with small buffers. First O(state=listening) on
    the receiving node, then O(state=measured) on the sending one, at last O(state=stopped) on both."
  - Each run is a transient unit of systemd with a time limit, so that nothing is left behind by a session that is lost.
  - Refuses to begin while a rank runs on the node.
author: [The Twinserve developers]
options:
  state:
    description: >-
      V(listening) starts a server for each run and waits until all listen; V(measured) runs the clients and returns their
      rates; V(stopped) ends all of them.
    type: str
    choices: [listening, measured, stopped]
    required: true
  runs:
    description: >-
      Each with C(hca), C(netdev) and own C(address) of a rail, a TCP C(port) of its own, and C(memory), C(host) or C(gpu).
      A client also has C(peer), the other end's address, and C(phase); those of one phase run at once. Other keys are
      returned as they are.
    type: list
    elements: dict
    default: []
  duration:
    description: Seconds of one run; the first and the last two are left out by the tool.
    type: int
    default: 5
  limit:
    description: Seconds after which a server ends, whoever came or not.
    type: int
    default: 120
  gpu_uuid:
    description: The GPU whose memory is used; left out, the first one that CUDA has.
    type: str
attributes:
  check_mode: {support: full, description: Measures nothing.}
  diff_mode: {support: none, description: Changes nothing that lasts.}
"""

EXAMPLES = r"""
- name: Listen on the worker
  twinserve.pair.rail_bandwidth:
    state: listening
    runs:
      - {hca: rocep1s0f0, netdev: enp1s0f0np0, address: 192.168.177.2, port: 18515, memory: host}
  delegate_to: spark-b

- name: Measure from the head
  twinserve.pair.rail_bandwidth:
    state: measured
    runs:
      - hca: rocep1s0f0
        netdev: enp1s0f0np0
        address: 192.168.177.1
        peer: 192.168.177.2
        port: 18515
        memory: host
        phase: 0
"""

RETURN = r"""
runs:
  description: >-
    Each run with C(gbits), its rate in Gb/s, or C(problem); C(speed) of the port's link and C(pcie), what its PCIe link
    carries before headers, both in Gb/s. What is not known is none.
  type: list
  elements: dict
  returned: when I(state=measured)
gpu_problem:
  description: Why GPU memory was not measured, for instance options that the tool here lacks; else empty.
  type: str
  returned: when I(state=listening) or I(state=measured)
silent:
  description: Why servers do not listen, as text.
  type: list
  elements: str
  returned: when I(state=listening)
rose:
  description: Error counters of the rails that rose meanwhile, as text.
  type: list
  elements: str
  returned: when I(state=measured)
"""

import platform
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import bandwidth_run, counters
from ..module_utils.bandwidth_plan import refusal
from ..module_utils.services import read_services
from ..module_utils.shell import CommandError
from ..module_utils.sysfs import port_folder

ARGUMENTS: dict[str, Any] = {
    "state": {"type": "str", "choices": ["listening", "measured", "stopped"], "required": True},
    "runs": {"type": "list", "elements": "dict", "default": []},
    "duration": {"type": "int", "default": 5},
    "limit": {"type": "int", "default": 120},
    "gpu_uuid": {"type": "str"},
}


def main() -> None:
    """Do one of three. Only a rank that runs is a reason to fail; what cannot be measured is told."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    if module.check_mode:
        module.exit_json(changed=False, runs=[], silent=[], gpu_problem="", rose=[])
    try:
        if module.params["state"] == "stopped":
            bandwidth_run.stop()
            module.exit_json(changed=False)
        if busy := refusal([{"services": read_services()}], [platform.node()]):
            module.fail_json(msg=busy)
        module.exit_json(changed=False, **_work(module.params))
    except (CommandError, OSError) as error:
        module.fail_json(msg=str(error))


def _work(given: dict[str, Any]) -> dict[str, Any]:
    """Listen or measure; GPU memory is left out where it cannot be measured."""
    runs, gpu, problem = given["runs"], [], ""
    try:
        if any(one["memory"] == "gpu" for one in runs):
            gpu = bandwidth_run.gpu_options(given["gpu_uuid"])
    except CommandError as error:
        problem = str(error)
        runs = [one for one in runs if one["memory"] == "host"]
    if given["state"] == "listening":
        silent = bandwidth_run.listen(runs, given["duration"], given["limit"], gpu)
        return {"silent": silent, "gpu_problem": problem}
    before = _errors(runs)
    measured = bandwidth_run.measure(runs, given["duration"], gpu)
    rose = [
        f"{hca}: {text}"
        for hca, after in _errors(runs).items()
        for text in counters.describe(counters.rise(before[hca], after))
    ]
    return {"runs": measured, "gpu_problem": problem, "rose": rose}


def _errors(runs: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Error counters by device; a device that is gone has none."""
    ports = {one["hca"]: port_folder(Path("/"), one["hca"]) for one in runs}
    return {hca: counters.read_counters(port) if port else {} for hca, port in ports.items()}


if __name__ == "__main__":
    main()
