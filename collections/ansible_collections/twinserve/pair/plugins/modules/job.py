#!/usr/bin/python
"""Ansible module: start, attach to and follow long work on a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: job
short_description: Run long work on a node, detached from the ssh session
description:
  - Runs a program as a transient systemd unit, so that it goes on when the ssh session ends.
  - A job of that name that is running already is attached to, not started again.
  - On the controller this is an action that asks again every few seconds and shows the progress.
author: [The Twinserve developers]
options:
  name:
    description: Name of the job, unique for the work it does.
    type: str
    required: true
  what:
    description: What exactly is done, where works of one name must not run side by side. One of another is refused.
    type: str
  title:
    description: What is shown to people; the name when it is not given.
    type: str
  argv:
    description: Program and arguments.
    type: list
    elements: str
    required: true
  user:
    description: Account to run as; root when it is not given.
    type: str
  env:
    description: Environment. Never a secret, since it is visible in the unit.
    type: dict
    default: {}
  env_file:
    description: File on the node with more environment, for what is secret; C(NAME=value) lines.
    type: path
  properties:
    description: Properties of the unit, C(NAME=value) as systemd has them, such as limits of memory.
    type: list
    elements: str
    default: []
  watch:
    description: Folders whose size shows the progress.
    type: list
    elements: path
    default: []
  total_gb:
    description: Size at the end, in GB (10^9 bytes), for the progress line.
    type: float
  stall_seconds:
    description: Give up when neither size nor output changed for so long.
    type: int
    default: 900
  meanings:
    description: Regular expressions of known failures, and what to tell people when the output has one of them.
    type: dict
    default: {}
  must_end:
    description: Fail when the end was not seen. For work of which nothing but its end shows that it went well.
    type: bool
    default: false
  start:
    description: Whether to start the job when it does not run; the follow-up calls do not.
    type: bool
    default: true
  stop:
    description: Stop the job with everything that it started, when it runs.
    type: bool
    default: false
  wait:
    description: Seconds to wait for the end within this call.
    type: float
    default: 5
attributes:
  check_mode: {support: full, description: Reports the change without starting anything.}
  diff_mode: {support: none, description: The work is not known in advance.}
"""

EXAMPLES = r"""
- name: Pull the image
  twinserve.pair.job:
    name: pull-image
    argv: [docker, pull, ghcr.io/example/engine@sha256:0123]
    watch: [/var/lib/docker]
"""

RETURN = r"""
status:
  description: C(running), C(done), C(failed) or C(absent).
  type: str
  returned: outside check mode
log:
  description: Last lines of its output.
  type: list
  elements: str
  returned: outside check mode
what:
  description: What systemd says that it is; C(what) as it was given, if it was.
  type: str
  returned: outside check mode
progress:
  description: "What the job's own program notes of itself: C(bytes), C(total), C(rate) in bytes a second, C(eta) in seconds, C(updated)."
  type: dict
  returned: outside check mode
meaning:
  description: What C(meanings) says of the failure; empty when it is none of those.
  type: str
  returned: outside check mode
"""

from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import jobs
from ..module_utils.shell import CommandError

ARGUMENTS: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "what": {"type": "str"},
    "title": {"type": "str"},
    "argv": {"type": "list", "elements": "str", "required": True},
    "user": {"type": "str"},
    "env": {"type": "dict", "default": {}},
    "env_file": {"type": "path"},
    "properties": {"type": "list", "elements": "str", "default": []},
    "watch": {"type": "list", "elements": "path", "default": []},
    "total_gb": {"type": "float"},
    "meanings": {"type": "dict", "default": {}},
    "stall_seconds": {"type": "int", "default": 900},
    "must_end": {"type": "bool", "default": False},
    "start": {"type": "bool", "default": True},
    "stop": {"type": "bool", "default": False},
    "wait": {"type": "float", "default": 5.0},
}


def main() -> None:
    """Start or attach, wait a little, report."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    if module.check_mode:
        module.exit_json(changed=True)
    name, watch = module.params["name"], module.params["watch"]
    try:
        found = jobs.read(name)
        attached = found.status == "running"
        if attached and module.params["what"] not in (None, found.what):
            module.fail_json(
                msg=f"{name} of {found.what} runs already (pid {found.pid}, since {found.since}): let it end, "
                f"or end it with: systemctl stop {jobs.unit_name(name)}"
            )
        if module.params["start"] and not attached:
            attached = _start(module.params)
        if module.params["stop"] and attached:
            jobs.stop(name)
        state = jobs.wait(name, module.params["wait"], watch)
        if state.status in ("done", "failed"):
            jobs.collect(name)
    except (CommandError, OSError) as error:
        module.fail_json(msg=f"{name}: {error}")
    meaning = jobs.meaning(state, module.params["meanings"])
    module.exit_json(changed=True, attached=attached, meaning=meaning, **asdict(state))


def _start(given: dict[str, Any]) -> bool:
    """Start the job; true when another run was quicker by a moment, and its job is the one to follow."""
    env = {key: str(value) for key, value in given["env"].items()}
    try:
        how = {key: given[key] for key in ("what", "user", "env_file", "properties")}
        jobs.start(given["name"], given["argv"], env=env, **how)
    except CommandError:
        if jobs.read(given["name"]).status != "running":
            raise
        return True
    return False


if __name__ == "__main__":
    main()
