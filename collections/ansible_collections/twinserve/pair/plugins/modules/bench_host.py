#!/usr/bin/python
"""Ansible module: look at the machine that sends the requests of the benchmark."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_host
short_description: Look at the machine that sends the requests of the benchmark
description:
  - Says whether AIPerf is there, with which Python it could be installed, and what an earlier run of a sweep has measured.
author: [The Twinserve developers]
options:
  version:
    description: The version of AIPerf.
    type: str
    required: true
  pins:
    description: The SHA-256 of the constraints that it is installed with.
    type: str
    required: true
  python:
    description: The program that would make its environment.
    type: str
    default: python3
  folder:
    description: Where the sweep keeps what it has measured.
    type: path
    required: true
  while_busy:
    description: Whether measurements count during which requests of others ran, or may have run.
    type: bool
    default: false
attributes:
  check_mode: {support: full, description: Only reads.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Look at the machine
  twinserve.pair.bench_host:
    version: 0.13.0
    pins: "{{ lookup('ansible.builtin.file', 'constraints.txt', rstrip=false) | hash('sha256') }}"
    folder: /var/lib/twinserve/benchmark/runs/pair1-0123456789ab
"""

RETURN = r"""
ready:
  description: Whether AIPerf is installed, with these pins.
  type: bool
  returned: always
python:
  description: The version of that Python; empty when there is none.
  type: str
  returned: always
user:
  description: The login user, who runs AIPerf.
  type: str
  returned: always
available_gib:
  description: Memory that is left there, in GiB.
  type: float
  returned: always
kept:
  description: Concurrencies that have been measured.
  type: list
  elements: int
  returned: always
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.benchmark import install, sweep
from ..module_utils.login_user import login_user
from ..module_utils.meminfo import read_memory
from ..module_utils.shell import CommandError, run

ARGUMENTS: dict[str, Any] = {
    "version": {"type": "str", "required": True},
    "pins": {"type": "str", "required": True},
    "python": {"type": "str", "default": "python3"},
    "folder": {"type": "path", "required": True},
    "while_busy": {"type": "bool", "default": False},
}


def main() -> None:
    """Look, and tell."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    given = module.params
    try:
        python = run([given["python"], "-c", "import platform; print(platform.python_version())"]).strip()
    except (CommandError, OSError):
        python = ""
    module.exit_json(
        changed=False,
        ready=install.is_ready(given["version"], given["pins"]),
        python=python,
        user=login_user().name,
        available_gib=read_memory().available_gib,
        kept=sweep.finished(Path(given["folder"]), given["while_busy"]),
    )


if __name__ == "__main__":
    main()
