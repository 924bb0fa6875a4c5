"""The checks that owners run in their own CI pass against the simulated pair, and fail when it is stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lab_pair import ROOT, Lab, Play


def acceptance(lab: Lab) -> subprocess.CompletedProcess[str]:
    """Run them as the README says."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/acceptance"]
    argv += [f"--ansible-inventory={lab.inventory}"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # as with the environment activated
    env = {**os.environ, "PATH": path}
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_acceptance_passes_on_a_pair_that_serves_and_fails_on_a_stopped_one(
    lab: Lab, converged: Play
) -> None:
    lab.play("site.yml").succeeded()
    serving = acceptance(lab)
    lab.play("playbooks/stop.yml").succeeded()
    stopped = acceptance(lab)
    lab.play("site.yml").succeeded()

    assert serving.returncode == 0, serving.stdout
    assert "5 passed" in serving.stdout
    assert stopped.returncode == 1, stopped.stdout
    assert "5 failed" in stopped.stdout or "4 failed" in stopped.stdout
