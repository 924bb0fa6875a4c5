"""Action `twinserve.pair.pair_service`: follow a start in short calls, and show what the pair is doing."""

from __future__ import annotations

from functools import partial
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.twinserve.pair.plugins.plugin_utils.patience import ask

display = Display()


class ActionModule(ActionBase):  # type: ignore[misc]
    """The supervisor decides when a start has failed; the action only asks it and tells.

    Each call waits a while on the node itself, so it is asked again at once.
    """

    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's answer, failed with the supervisor's reason when the pair is down."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = dict(self._task.args)
        answer = self._call(args, task_vars)
        if answer.get("failed") or self._task.check_mode or args.get("state") == "stopped":
            return {**result, **answer}
        changed, diff = answer["changed"], answer.get("diff")
        host, shown = (task_vars or {}).get("inventory_hostname", ""), ""
        while not answer.get("settled"):
            detail = str((answer.get("pair") or {}).get("detail") or "waiting for the supervisor")
            if detail != shown:
                shown = detail
                display.display(f"    {host}: {detail}")
            answer = ask(partial(self._call, {**args, "state": "followed"}, task_vars))
            if answer.get("failed"):
                return {**result, **answer, "changed": changed}
        answer.update(changed=changed, diff=diff)
        pair = answer["pair"]
        if pair.get("state") != "serving":
            reason = pair.get("detail") or pair.get("last_error")
            look = "journalctl -u twinserve on the head has both ranks' last lines"
            # Not the whole state: it would push the reason off the screen.
            answer.pop("pair")
            answer.update(failed=True, msg=f"the pair is down: {reason}. {look}")
        return {**result, **answer}

    def _call(self, args: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        answer: dict[str, Any] = self._execute_module(
            module_name="twinserve.pair.pair_service", module_args=args, task_vars=task_vars
        )
        return answer
