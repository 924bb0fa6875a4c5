"""`--skip-tags verify` leaves out the question to the API that a run ends with, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASKED = ["serve : Ask the API", "serve : Show where the API is"]


def tasks(playbook: str, *words: str) -> list[str]:
    """Names of the tasks that a run begins with, in their order."""
    program = Path(sys.executable).with_name("ansible-playbook")
    done = subprocess.run(
        [str(program), playbook, "--list-tasks", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [line.partition("TAGS:")[0].strip() for line in done.stdout.splitlines() if "TAGS:" in line][1:]


@pytest.mark.parametrize("playbook", ["site.yml", "serve.yml", "playbooks/ranks.yml"])
def test_only_the_question_at_the_end_is_left_out(playbook: str) -> None:
    whole, left = tasks(playbook), tasks(playbook, "--skip-tags", "verify")
    assert [name for name in whole if name.startswith("serve")][-2:] == ASKED
    assert left == [name for name in whole if name not in ASKED]
