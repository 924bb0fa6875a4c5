"""Failures on demand, set by the lab in one file of the simulated machine. No file: nothing fails.

The file is /lab/switches.json, an object. Keys apply to the rank that runs on this machine; an object under
"ranks" ("0", "1") overrides them for one rank. README.md lists the keys.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULTS: dict[str, Any] = {
    "import_seconds": 0.6,
    "load_seconds": 1.0,
    "rendezvous_wait_s": 600.0,
    "roce_wait_s": 20.0,
    "refuse_window": None,
    "hang_load": False,
    "nccl_error": None,
    "nccl_over_tcp": False,
    "roce_error": None,
    "crash_at_start": None,
    "crash_after_ready_s": None,
    "exit_code": 1,
    "ignore_sigterm": False,
    "peer_death": "hang",
    "hang_completions": False,
    "fail_completions": False,
    "empty_reply": False,
    "collapsed_reply": False,
    "cut_stream_after": None,
    "prefill_tokens_per_s": 50_000.0,
    "decode_tokens_per_s": 400.0,
    "max_waiting": 64,
    "full_status": 503,
    "late_refusal": False,
    "api_key": None,
    "missing_routes": [],
    "messages_route": False,
    "chunked_bodies": False,
    "ignore_fields": [],
    "wrong_model": None,
    "health_without": [],
    "frozen_metrics": False,
    "one_piece": False,
    "no_usage": False,
    "never_reasons": False,
    "late_reasoning": False,
    "random_answers": False,
    "lossy_detokenize": False,
    "loose_after_reasoning": False,
    "untyped_arguments": False,
    "clamp_budget": False,
    "forget_responses": False,
    "refuse_media": [],
    "blind": False,
    "wrong_colour": False,
    "fetch_urls": False,
    "no_limits": False,
    "one_at_a_time": False,
    "nobody_waits": False,
    "forget_prompts": False,
}


@dataclass(frozen=True)
class Switches:
    """The lab directory of one machine, read anew at each question: a test may switch while it serves."""

    directory: Path
    rank: int

    def get(self, key: str) -> Any:
        """The value of a switch; KeyError for a name that does not exist."""
        default = DEFAULTS[key]
        return self._read().get(key, default)

    def check(self) -> None:
        """ValueError for a switch that does not exist: a misspelt failure would be a passing test."""
        unknown = sorted(set(self._read()) - set(DEFAULTS))
        if unknown:
            raise ValueError(f"{self.directory / 'switches.json'}: unknown switch {', '.join(unknown)}")

    def strike(self, key: str) -> dict[str, Any] | None:
        """A switch that may be limited to its first `times` uses: its object if it strikes now.

        A plain value v stands for {"value": v}.
        """
        value = self.get(key)
        if value is None or value is False:
            return None
        rule: dict[str, Any] = value if isinstance(value, dict) else {"value": value}
        limit = rule.get("times")
        if limit is None:
            return rule
        ledger = self.directory / "switch-uses.json"
        uses: dict[str, int] = json.loads(ledger.read_text()) if ledger.is_file() else {}
        if uses.get(key, 0) >= limit:
            return None
        uses[key] = uses.get(key, 0) + 1
        ledger.write_text(json.dumps(uses))
        return rule

    def _read(self) -> dict[str, Any]:
        path = self.directory / "switches.json"
        if not path.is_file():
            return {}
        found: dict[str, Any] = json.loads(path.read_text())
        ranks = found.pop("ranks", {})
        return {**found, **ranks.get(str(self.rank), {})}
