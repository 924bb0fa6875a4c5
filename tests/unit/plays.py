"""Run a play of ours against hosts that are this machine, with what their nodes said given as facts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_HERE = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
PAIRS = {"pair1": ("spark-a", "spark-b"), "pair2": ("spark-c", "spark-d")}


@dataclass(frozen=True)
class Ran:
    """How ansible-playbook ended, and what it printed."""

    code: int
    output: str


def play(
    folder: Path,
    tasks: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Mapping[str, Any]],
    *words: str,
) -> Ran:
    """Run `tasks` on both pairs; `facts` are ansible_facts by host, none for one that was not reached."""
    groups = {
        pair: {"hosts": {host: {**_HERE, "rank": rank} for rank, host in enumerate(hosts)}}
        for pair, hosts in PAIRS.items()
    }
    given = {
        "name": "Take what the nodes said",
        "ansible.builtin.set_fact": {"cacheable": True, "twinserve_node": "{{ given[inventory_hostname] }}"},
        "when": "inventory_hostname in given",
    }
    plays = [{"name": "A play", "hosts": "sparks", "gather_facts": False, "tasks": [given, *tasks]}]
    (folder / "hosts.yml").write_text(json.dumps({"sparks": {"children": groups}}))
    (folder / "play.yml").write_text(json.dumps(plays))
    (folder / "given.json").write_text(json.dumps({"given": facts}))
    program = Path(sys.executable).with_name("ansible-playbook")
    argv = [str(program), "-i", str(folder / "hosts.yml"), "-e", f"@{folder / 'given.json'}"]
    env = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(
        [*argv, *words, str(folder / "play.yml")], capture_output=True, text=True, env=env, check=False
    )
    return Ran(done.returncode, done.stdout + done.stderr)


def role(tasks_from: str) -> dict[str, Any]:
    """The task that includes a part of the role `operate`."""
    return {"name": "Act", "ansible.builtin.include_role": {"name": "operate", "tasks_from": tasks_from}}
