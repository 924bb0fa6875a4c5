"""The checks that owners run pass against the simulated pair, and fail by name when something is broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lab_pair import ROOT, Lab, Play


def acceptance(*words: str) -> subprocess.CompletedProcess[str]:
    """Run them as the README says."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/acceptance", *words]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # as with the environment activated
    env = {**os.environ, "PATH": path}
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_acceptance_passes_on_a_pair_that_serves_and_fails_on_a_stopped_one(
    lab: Lab, converged: Play
) -> None:
    lab.play("site.yml").succeeded()
    inventory = f"--ansible-inventory={lab.inventory}"
    hosts = ",".join(f"ansible://{name}" for name in lab.hosts)
    some = ("-k", "models or rank or supervisor")
    serving = acceptance(inventory)
    by_hosts = acceptance("--sudo", f"--hosts={hosts}", inventory, *some)
    lab.play("playbooks/stop.yml").succeeded()
    stopped = acceptance(inventory, *some)
    lab.play("site.yml").succeeded()

    assert (serving.returncode, " failed" in serving.stdout) == (0, False), serving.stdout
    assert (by_hosts.returncode, "3 passed" in by_hosts.stdout) == (0, True), by_hosts.stdout
    assert stopped.returncode == 1, stopped.stdout
    assert "test_api[" in stopped.stdout and "was not answered" in stopped.stdout, stopped.stdout


def test_verify_passes_whole_changes_nothing_and_names_what_is_broken(lab: Lab, converged: Play) -> None:
    whole = lab.play("playbooks/verify.yml").succeeded()
    assert whole.changed == 0
    assert "checks passed" in whole.output
    lab.verb("engine", lab.hosts[0], "blind=true")
    broken = lab.play("playbooks/verify.yml", "-e", "only=chat,image_png").refused()
    lab.verb("engine", lab.hosts[0], "--clear")
    assert "1 of 2 checks failed" in broken.output and "image_png: " in broken.output


def test_verify_in_check_mode_asks_nothing_and_names_the_checks(lab: Lab, converged: Play) -> None:
    run = lab.play("playbooks/verify.yml", "--check", "--diff").succeeded()
    assert run.changed == 0 and "not asked in check mode" in run.output


@pytest.mark.slow
def test_a06_the_summary_says_that_images_and_video_are_off(lab: Lab, converged: Play) -> None:
    off = lab.play("serve.yml", "-e", "vision=false").succeeded()
    asked = lab.play(
        "playbooks/verify.yml", "-e", "vision=false", "-e", "only=vision_off,image_png"
    ).succeeded()
    on = lab.play("serve.yml").succeeded()
    assert "images and video: off" in off.output and "images and video: off" not in on.output
    assert "1 of 2 checks passed" in asked.output
