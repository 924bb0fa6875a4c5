#!/usr/bin/python
"""Ansible module: start or stop the pair through its supervisor on the head."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_service
short_description: Start or stop a pair
description:
  - Runs on the head. The supervisor, a systemd service, starts and stops all ranks of the pair as one.
  - On the controller this is an action that follows a start and shows its progress.
author: [The Twinserve developers]
options:
  state:
    description:
      - V(started) enables the service for the next boot and starts the pair unless it serves this configuration. The
        gateway is started or stopped before, as the configuration says.
      - V(reloaded) lets the supervisor take a new runtime and its own settings; the ranks run on.
      - V(stopped) stops all ranks, waits a while for their memory, and disables the service; stopped stays stopped,
        also through a reboot. Where no supervisor runs, it stops the rank of this node, which may have outlived one.
      - V(followed) only waits for the supervisor.
    type: str
    choices: [started, reloaded, stopped, followed]
    required: true
  enabled:
    description: With V(state=stopped), whether the pair shall come back at the next boot, as in the middle of a change.
    type: bool
    default: false
  digest:
    description: Identifies the configuration that shall be served.
    type: str
  wait:
    description: Seconds to wait for a settled state within this call.
    type: float
    default: 10
attributes:
  check_mode: {support: full, description: Compares and predicts.}
  diff_mode: {support: full, description: Shows the state before and after.}
"""

EXAMPLES = r"""
- name: Start the pair
  twinserve.pair.pair_service:
    state: started
    digest: "{{ pair_config.digest }}"
"""

RETURN = r"""
pair:
  description: The supervisor's state.
  type: dict
  returned: always
settled:
  description: Whether the pair serves or is down for good.
  type: bool
  returned: always
log:
  description: What the supervisor wrote to its journal since its start, with the ranks' last lines.
  type: list
  elements: str
  returned: when the pair is down for good
"""

import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.gateway import upstream
from ..module_utils.meminfo import read_memory
from ..module_utils.pair_state import is_settled, read_state, wait_state, wait_successor
from ..module_utils.services import is_active, read_journal, read_services
from ..module_utils.shell import CommandError, run

_UNIT, _RANK = "twinserve.service", "twinserve-rank.service"
# Above drain_timeout and stop_timeout at their largest, and what the supervisor adds to them.
LONGEST_STOP = 5400
# systemd waits a moment before it starts a supervisor that went for its successor.
_SUCCESSION = 60.0
_MEMORY = 60.0
ARGUMENTS: dict[str, Any] = {
    "state": {
        "type": "str",
        "choices": ["started", "reloaded", "stopped", "followed"],
        "required": True,
    },
    "enabled": {"type": "bool", "default": False},
    "digest": {"type": "str"},
    "wait": {"type": "float", "default": 10.0},
}


def main() -> None:
    """Compare, then predict or do."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    wanted, digest = module.params["state"], module.params["digest"]
    try:
        units = read_services()
        unit = units.get(_UNIT, {})
        state = read_state()
        commands = plan(wanted, unit, state, digest, keep=module.params["enabled"])
        if wanted == "stopped" and not is_active(unit) and is_active(units.get(_RANK, {})):
            commands.append(["systemctl", "stop", _RANK])
        before = (state or {}).get("state", "stopped") if unit.get("ActiveState") == "active" else "stopped"
        after = before if not commands else "stopped" if wanted == "stopped" else "serving"
        if not module.check_mode:
            if wanted == "started" and commands:
                upstream.follow()
            for command in commands:
                run(command, timeout=LONGEST_STOP)
            if any(command[1] in ("start", "restart", "reload") for command in commands):
                # The old supervisor's answer must not pass for the new one's.
                _await_successor(module, (state or {}).get("pid"))
            state = wait_state(digest, module.params["wait"]) if wanted != "stopped" else read_state()
            if wanted != "stopped" and not is_settled(state, digest):
                _refuse_dead(module, read_services().get(_UNIT, {}))
            if ["systemctl", "stop", _RANK] in commands:
                _wait_for_memory()
            if ["systemctl", "stop", _UNIT] in commands and state and state.get("detail") != "stopped":
                module.warn(f"the pair is {state.get('detail')}")
            if ["systemctl", "stop", _UNIT] in commands and state and (cut := state.get("cut")):
                module.warn(f"{cut} running request{'s were' if cut > 1 else ' was'} cut off by the stop")
    except CommandError as error:
        module.fail_json(msg=str(error))
    settled = is_settled(state, digest)
    log = (
        read_journal(_UNIT)
        if wanted != "stopped" and settled and (state or {}).get("state") == "down"
        else []
    )
    diff = {"before": f"pair: {before}\n", "after": f"pair: {after}\n"}
    module.exit_json(changed=bool(commands), diff=diff, pair=state or {}, settled=settled, log=log)


def plan(
    wanted: str,
    unit: dict[str, str],
    state: dict[str, object] | None,
    digest: str | None,
    keep: bool = False,
) -> list[list[str]]:
    """The systemctl calls that lead from what is to what is wanted; none when it is there already."""
    active = is_active(unit)
    enabled = unit.get("UnitFileState") == "enabled"
    enable = [] if enabled else [["systemctl", "--quiet", "enable", _UNIT]]
    if wanted == "followed":
        return []
    # One that is coming up takes what is there anyway.
    reload = [["systemctl", "reload", _UNIT]] if active and unit["ActiveState"] != "activating" else []
    if wanted == "reloaded":
        return reload
    if wanted == "stopped":
        disable = [["systemctl", "--quiet", "disable", _UNIT]] if enabled and not keep else []
        return disable + ([["systemctl", "stop", _UNIT]] if active else [])
    if active and state is None:
        # It may well serve this: its successor looks, and keeps what is right.
        return enable + reload
    serves = active and state is not None and state.get("digest") == digest and state.get("state") != "down"
    if active and not serves:
        return [*enable, ["systemctl", "restart", _UNIT]]
    return enable if serves else [*enable, ["systemctl", "start", _UNIT]]


def _wait_for_memory() -> None:
    """After a rank without supervisor was stopped: until its memory does not come back any further."""
    limit, before = time.monotonic() + _MEMORY, 0.0
    while (now := read_memory().available_gib) - before >= 1 and time.monotonic() < limit:
        before = now
        time.sleep(0.5)


def _await_successor(module: AnsibleModule, pid: int | None) -> None:
    """Wait until the supervisor that comes up has written its state; fail when none does."""
    if not wait_successor(pid, _SUCCESSION):
        _refuse_dead(module, read_services().get(_UNIT, {}))
        module.fail_json(msg=f"{_UNIT} wrote no state within {_SUCCESSION:.0f} s: see journalctl -u {_UNIT}")


def _refuse_dead(module: AnsibleModule, unit: dict[str, str]) -> None:
    """Nobody will ever settle the state of a supervisor that systemd has given up."""
    if not is_active(unit):
        said = unit.get("StatusText") or f"see journalctl -u {_UNIT}"
        module.fail_json(msg=f"{_UNIT} is {unit.get('ActiveState', 'not there')}: {said}")


if __name__ == "__main__":
    main()
