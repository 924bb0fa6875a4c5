"""Action `twinserve.pair.job`: follow long work on a node in short calls, and show how far it is."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.twinserve.pair.plugins.module_utils import progress
from ansible_collections.twinserve.pair.plugins.plugin_utils.patience import ask

display = Display()
# What became of a job that neither succeeded nor failed by itself.
_ENDS = {
    "stalled": "was stopped",
    "lost": "cannot be followed",
}


class ActionModule(ActionBase):  # type: ignore[misc]
    """Start once, then ask again: a lost ssh session costs one question, not the work."""

    _requires_connection = True
    _shown_every = 15.0

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's last answer; failed with the job's own last lines when it failed."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = dict(self._task.args)
        # When its answer was lost, the second question attaches to the job.
        answer = self._ask(args, task_vars)
        if answer.get("failed") or self._task.check_mode:
            return {**result, **answer}
        host = (task_vars or {}).get("inventory_hostname", "")
        title = str(args.get("title") or args["name"])
        if answer.get("attached"):
            since = answer["since"] or "now"
            display.display(
                f"    {host}: {title} already running since {since} (pid {answer['pid']}): waiting"
            )
        self._warned: set[str] = set()
        answer = self._follow(answer, args, f"{host}: {title}", task_vars)
        self._warn(answer, host)
        if answer["status"] == "absent":
            # Another run at the same time may have taken the end away. What follows looks at the work itself,
            # unless the end is all that there is of it.
            over = f"{title} is over; another run took its result, or the node restarted"
            if args.get("must_end"):
                answer.update(failed=True, msg=f"{over}: run this again")
            else:
                display.display(f"    {host}: {over}")
        elif answer["status"] != "done":
            lines = answer["log"] = (answer.get("log") or ["no output"])[-5:]
            how = _ENDS.get(answer["status"], f"failed (exit {answer.get('exit_code')})")
            answer.update(failed=True, msg=f"{title} {how}: {answer.get('meaning') or lines[-1]}")
        return {**result, **answer}

    def _follow(
        self, answer: dict[str, Any], args: dict[str, Any], title: str, task_vars: dict[str, Any] | None
    ) -> dict[str, Any]:
        """Poll until the job ends, or stands still for too long: then it is stopped, to be begun anew."""
        began = moved = time.monotonic()
        # Numbers are shown as soon as there are some; words alone are worth a line only when it takes long.
        shown = began - self._shown_every if answer.get("progress") else began
        seen: Any = None
        stall = float(args.get("stall_seconds") or 900)
        while answer.get("status") == "running":
            now = time.monotonic()
            self._warn(answer, title.partition(":")[0])
            done = (answer.get("progress") or {}).get("bytes")
            if (found := (answer.get("size"), answer.get("log"), done)) != seen:
                seen, moved = found, now
            if now - moved > stall:
                self._ask({**args, "start": False, "stop": True, "wait": 0}, task_vars)
                lines = [*(answer.get("log") or []), f"no progress for {stall:.0f} s"]
                return {**answer, "status": "stalled", "log": lines}
            if now - shown >= self._shown_every:
                shown = now
                display.display(f"    {title}: {self._progress(answer, args, now - began)}")
            answer = self._ask({**args, "start": False, "wait": 10}, task_vars)
            if answer.get("failed"):
                return {**answer, "status": "lost", "log": [str(answer.get("msg"))]}
        return answer

    def _ask(self, args: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        return ask(
            lambda: self._execute_module(
                module_name="twinserve.pair.job", module_args=args, task_vars=task_vars
            )
        )

    def _warn(self, answer: dict[str, Any], host: str) -> None:
        """Show each warning of the work once, as soon as it is told."""
        for text in (answer.get("progress") or {}).get("warnings") or []:
            if text not in self._warned:
                self._warned.add(text)
                display.display(f"    {host}: warn {text}")

    @staticmethod
    def _progress(answer: dict[str, Any], args: dict[str, Any], seconds: float) -> str:
        if numbers := answer.get("progress"):
            return progress.line(numbers)
        done = float(answer.get("size") or 0) / 1e9
        total = f" of {float(args['total_gb']):.1f}" if args.get("total_gb") else ""
        size = f"{done:.1f}{total} GB, " if args.get("watch") else ""
        last = (answer.get("log") or [""])[-1][:60]
        return f"{size}{seconds:.0f} s  {last}".rstrip()
