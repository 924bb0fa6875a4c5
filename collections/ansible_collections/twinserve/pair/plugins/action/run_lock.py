"""Action `twinserve.pair.run_lock`: say who runs this, and whether another run from here has ended."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.twinserve.pair.plugins.module_utils.pair_finding import NoPair, Pair, find_pair
from ansible_collections.twinserve.pair.plugins.module_utils.run_lock import (
    Holder,
    Process,
    find_process,
    parse,
)

# Options of ansible-playbook whose value may be a YAML file that is no playbook.
_TAKE_FILES = frozenset({"-i", "--inventory", "--inventory-file", "-e", "--extra-vars"})


class ActionModule(ActionBase):  # type: ignore[misc]
    """The node cannot know whether a process of the controller lives."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask the node, and once more when the run that it names has ended here."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        known = task_vars or {}
        host, groups = str(known["inventory_hostname"]), known["groups"]
        ranks = {name: one["rank"] for name in groups["all"] if "rank" in (one := known["hostvars"][name])}
        head = host  # an inventory that is not in order must keep nobody from stopping a node
        with contextlib.suppress(NoPair):
            pair = find_pair(host, groups, ranks)
            head = pair.hosts[0]
            if left_out := [one for one in pair.hosts if one not in known["ansible_play_hosts_all"]]:
                return {**result, "failed": True, "head": head, "msg": _limited(pair, left_out)}
        if host != head:
            return {**result, "changed": False, "head": head}
        own = _own()
        args = {**self._task.args, "holder": asdict(own)}
        answer = self._call(args, task_vars)
        other = parse(answer.get("holder"))
        if other and other.controller == own.controller and not _lives(other.run):
            answer = self._call({**args, "gone": other.id}, task_vars)
        return {**result, **answer, "head": head}

    def _call(self, args: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        answer: dict[str, Any] = self._execute_module(
            module_name="twinserve.pair.run_lock", module_args=args, task_vars=task_vars
        )
        return answer


def _limited(pair: Pair, left_out: Sequence[str]) -> str:
    """A node that is off is in the run all the same; only --limit leaves one out."""
    return (
        f"what changes a pair acts on all of its ranks, and --limit leaves out "
        f"{', '.join(left_out)}: remove --limit, or name the pair: --limit {pair.name}"
    )


def _own() -> Holder:
    # Every task has a process of its own; the run is the one that they all come from.
    run = find_process(os.getppid()) or Process(os.getppid(), 0)
    words = zip(sys.argv, sys.argv[1:], strict=False)
    books = [Path(word).name for before, word in words if _is_book(word) and before not in _TAKE_FILES]
    name = socket.gethostname()
    return Holder(
        who=f"{getpass.getuser()}@{name}",
        what=" ".join(books) or "a playbook",
        since=time.strftime("%H:%M:%S %Z"),
        controller=_machine(),
        run=run,
    )


def _is_book(word: str) -> bool:
    return word.endswith((".yml", ".yaml")) and not word.startswith(("-", "@"))


def _machine() -> str:
    """What no address or interface changes; containers may share all but their host name."""
    own = Path("/etc/machine-id")
    number = own.read_text().strip() if own.exists() else ""
    return f"{number or f'{uuid.getnode():x}'}/{socket.gethostname()}"


def _lives(run: Process) -> bool:
    """Whether a run of this controller is under way; where there is no /proc (macOS) its id alone tells."""
    if Path("/proc/self/stat").exists():
        return find_process(run.pid) == run
    try:
        os.kill(run.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # another user's
    return True
