"""How long a play takes, beside one that has a single task: what the machine and Ansible itself cost."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

from bench.pair import ROOT, Pair

ONE_TASK = ROOT / "bench/one_task.yml"
_CHANGED = re.compile(r"changed=([1-9]\d*)")


@dataclass(frozen=True)
class Timed:
    """Seconds of every run of a play, and what it did over the wire."""

    name: str
    seconds: list[float]
    round_trips: int

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)


def play(pair: Pair, *words: str) -> float:
    """Seconds of a play that finds nothing to change."""
    seconds, said = run(pair, *words)
    if _CHANGED.search(said):
        sys.exit(f"bench: {words[0]} changed something:\n{said[-3000:]}")
    return seconds


def round_trips(pair: Pair, *words: str) -> int:
    """Commands that a play sends to hosts, one ssh session each on a connection that is kept."""
    return len(re.findall(r"SSH: EXEC ", run(pair, "-vvv", *words)[1]))


def run(pair: Pair, *words: str, **variables: str) -> tuple[float, str]:
    """Seconds of a play, and what it printed."""
    argv = [str(ROOT / ".venv/bin/ansible-playbook"), "-i", str(pair.folder / "inventory"), *words]
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1", **variables}
    began = time.monotonic()
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if done.returncode:
        sys.exit(f"bench: {words} failed:\n{done.stdout[-3000:]}{done.stderr}")
    return seconds, done.stdout
