"""Starting and stopping is for whole pairs: `--limit` to one node is refused before any node is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Nobody answers there.
INVENTORY = """
sparks:
  children:
    pair1:
      hosts:
        spark-a: {rank: 0, ansible_host: 198.51.100.1}
        spark-b: {rank: 1, ansible_host: 198.51.100.2}
"""


@pytest.mark.parametrize(("given", "left_out"), [("spark-a", "spark-b"), ("spark-b", "spark-a")])
def test_o06_a_limit_to_one_node_of_a_pair_stops_nothing(tmp_path: Path, given: str, left_out: str) -> None:
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(INVENTORY)
    program = Path(sys.executable).with_name("ansible-playbook")
    argv = [str(program), "-i", str(inventory), "playbooks/stop.yml", "--limit", given]
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_TIMEOUT": "1"}
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)

    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 2
    assert (
        f"what changes a pair acts on all of its ranks, and --limit leaves out {left_out}:"
        " remove --limit, or name the pair: --limit pair1"
    ) in said
    assert "unreachable=0" in said
