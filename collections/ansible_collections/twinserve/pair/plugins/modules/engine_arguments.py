#!/usr/bin/python
"""Ansible module: let the engine's own parser judge a rank's arguments, before anything is stopped."""

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_arguments
short_description: Check a rank's arguments with the engine's own parser
description:
  - Runs the engine's parser in a throw-away container of the image, without a GPU and without a network.
  - A typing error is found here, while the running pair goes on serving.
author: [The Twinserve developers]
options:
  image:
    description: The image that will serve.
    type: str
    required: true
  parser:
    description: Program in the image that takes the arguments and exits non-zero when it refuses them.
    type: list
    elements: str
    required: true
  arguments:
    description: What the rank will be started with.
    type: list
    elements: str
    required: true
attributes:
  check_mode: {support: full, description: Only asks.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Check the arguments
  twinserve.pair.engine_arguments:
    image: ghcr.io/example/engine@sha256:0123
    parser: [python3, -c, "import sys; from engine.cli import build_parser; build_parser().parse_args(sys.argv[1:])"]
    arguments: [serve, /model, --parallel, "2"]
"""

RETURN = r"""
{}
"""

import subprocess
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.shell import last_line

ARGUMENTS: dict[str, Any] = {
    "image": {"type": "str", "required": True},
    "parser": {"type": "list", "elements": "str", "required": True},
    "arguments": {"type": "list", "elements": "str", "required": True},
}


def main() -> None:
    """Ask the parser; its last line is the reason."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
    )
    parser, arguments = module.params["parser"], module.params["arguments"]
    argv = ["docker", "run", "--rm", "--pull", "never", "--network", "none", "--entrypoint", parser[0]]
    argv.append(module.params["image"])
    try:
        done = subprocess.run(
            [*argv, *parser[1:], *arguments], capture_output=True, text=True, timeout=300, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        module.fail_json(msg=f"the argument check could not run: {error}")
    if done.returncode == 0:
        module.exit_json(changed=False)
    reason = last_line(done.stderr or done.stdout)
    # Docker's own codes: it failed, the program cannot be run, there is no such program.
    if done.returncode in (125, 126, 127):
        module.fail_json(msg=f"the argument check could not run: {reason}")
    module.fail_json(
        msg=f"the engine rejects these arguments: {reason}; nothing was changed. Arguments: {' '.join(arguments)}"
    )


if __name__ == "__main__":
    main()
