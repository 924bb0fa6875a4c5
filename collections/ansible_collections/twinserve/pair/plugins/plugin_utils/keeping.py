"""Around a module that changes how a node is reached: its change is kept only over a new connection.

A session that is open may live on where no new one comes through. So it is closed before the node is asked to
keep the change; where nobody asks in time, the node takes the change back by itself.
"""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.twinserve.pair.plugins.module_utils.confirming import LIMIT

display = Display()
# Seconds after the change until we give the node up: its timer, its undo (netplan, NetworkManager), and ssh's
# own wait for each try.
PATIENCE = LIMIT + 65.0
_PAUSE = 2.0

Answer = dict[str, Any]


class KeepingAction(ActionBase):  # type: ignore[misc]
    """The node decides and acts; this only asks, waits and tells."""

    _requires_connection = True
    # The module, what to run again after a failure, what to look at on the console of a node that is lost.
    module = ""
    playbook = ""
    look = ""

    def tried(self, args: Answer) -> str:
        """What was being done to the node, for who reads that it failed."""
        raise NotImplementedError

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> Answer:
        """Return the module's answer, failed with what became of the node when the change was not kept."""
        result: Answer = super().run(tmp, task_vars)
        variables = task_vars or {}
        args = dict(self._task.args)
        began = time.monotonic()
        try:
            answer = self._call(args, variables)
        except AnsibleConnectionFailure as error:
            answer = {"failed": True, "msg": f"the connection was lost ({error})"}
        if not self._task.check_mode and _died(answer):
            return {**result, **self._lost(args, variables, str(answer.get("msg")))}
        if answer.get("way_back") != "armed":
            return {**result, **answer}
        kept, lost = self._ask(variables, began)
        if kept.get("way_back") != "kept":
            return {**result, **self._told(kept, args, variables, _unkept(kept, lost))}
        if kept.get("failed"):
            text = f"{variables.get('inventory_hostname', '')}: {kept.get('msg')}"
            return {**result, **answer, "way_back": "kept", "failed": True, "msg": text}
        return {**result, **answer, "way_back": "kept"}

    def _lost(self, args: Answer, variables: Answer, why: str) -> Answer:
        """The module was cut off or killed: wait until its timer has gone off, and never confirm."""
        host = variables.get("inventory_hostname", "")
        display.display(f"    {host}: {why.splitlines()[0]}: waiting for the node to go back by itself")
        # It was armed before now; asked while it still is, our question would keep the change.
        began = time.monotonic()
        while time.monotonic() - began < LIMIT + _PAUSE:
            time.sleep(_PAUSE)
        answer, _ = self._ask(variables, began)
        return self._told(answer, args, variables, why)

    def _ask(self, variables: Answer, began: float) -> tuple[Answer, str]:
        """The node's answer over a new connection, tried until patience ends; and why the first failed."""
        why, answer = "", {"failed": True, "way_back": "unknown"}
        while time.monotonic() - began <= PATIENCE:
            try:
                self._connection.reset()
                answer = self._call({"state": "confirmed"}, variables)
                if not _died(answer):
                    break
            except AnsibleConnectionFailure as error:
                why = why or f" ({error})"
            time.sleep(_PAUSE)
        return answer, why

    def _call(self, args: Answer, variables: Answer) -> Answer:
        answer: Answer = self._execute_module(
            module_name=f"twinserve.pair.{self.module}", module_args=args, task_vars=variables
        )
        return answer

    def _told(self, answer: Answer, args: Answer, variables: Answer, why: str) -> Answer:
        """What was tried on which host, what became of it, and what to do."""
        host = variables.get("inventory_hostname", "")
        what = {
            "undone": "it took the change back by itself and is reachable again",
            "kept": "it is reachable, and the change is live, but was not seen to its end",
            "none": "it is reachable again; no change waits there any more (a restart, or it never began)",
        }.get(str(answer.get("way_back")))
        if what is None and answer.get("way_back") != "unknown":
            said = str(answer.get("msg"))
            what = "it is reachable again, but does not say what became of it" + f": {said}" * (
                said not in why
            )
        follow = f"journalctl -u 'twinserve-way-back-*' there tells more; then run {self.playbook} again"
        if what is None:
            what = f"it is not reachable after {PATIENCE:.0f} s either, and should have gone back by itself"
            follow = f"look at its console: sudo systemctl list-timers, {self.look}"
        text = f"{host}: {self.tried(args)}: {why.strip()}; {what}. {follow}"
        return {"failed": True, "changed": False, "msg": text, "way_back": answer.get("way_back")}


def _died(answer: Answer) -> bool:
    """Whether the module never came to its end: then only the node knows what it did."""
    return bool(answer.get("failed")) and "way_back" not in answer and "invocation" not in answer


def _unkept(answer: Answer, lost: str) -> str:
    """Why a change was not kept, by the node's answer; `lost` tells why a connection did not come through."""
    if lost or answer.get("way_back") == "unknown":
        return f"no new connection came through in time{lost}"
    if answer.get("way_back") == "undone":
        return "it was not confirmed in time"
    return f"it could not be confirmed ({answer.get('msg')})"
