"""The action plugin in a real ansible-playbook run: what a person reads in the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

INVENTORY = """
all:
  children:
    sparks:
      vars: {engine: tensorfold, accept_dflash2_license: true, half: 2}
      children:
        pair1:
          hosts:
            spark-a: {rank: 0, ansible_host: 192.0.2.11, hf_token: hf_secret}
            spark-b: {rank: 1, ansible_host: 192.0.2.12, hf_cache: /mnt/hf}
"""
STATIONS = """
    stations:
      vars: {engine: vllm, accept_nvidia_open_model_license: true}
      children:
        pair2:
          hosts:
            station-a: {rank: 0, ansible_host: 192.0.2.21}
            station-b: {rank: 1, ansible_host: 192.0.2.22}
"""
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Check the settings
      twinserve.pair.settings:
    - name: Show
      ansible.builtin.debug:
        msg: >-
          {{ ansible_facts.twinserve_pair.name }} rank {{ ansible_facts.twinserve_pair.rank }}
          parallel {{ ansible_facts.twinserve_settings.parallel + 0 }}
          {{ ansible_facts.twinserve_settings.hf_cache }}
          {{ ansible_facts.twinserve_release.engine_version }}
"""


def run(tmp_path: Path, *arguments: str, inventory: str = INVENTORY) -> tuple[int, str]:
    """Exit code and output of a run. The hosts do not exist: nothing may connect."""
    (tmp_path / "hosts.yml").write_text(inventory, encoding="utf-8")
    (tmp_path / "play.yml").write_text(PLAY, encoding="utf-8")
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", "hosts.yml", "play.yml", *arguments],
        cwd=tmp_path, env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def message(output: str, host: str) -> list[str]:
    """The lines of the failure of `host`, as a list of faults."""
    text = output.partition(f"fatal: [{host}]")[2].partition("\n\n")[0].partition("\nfatal: [")[0]
    text = text.partition("[ERROR]")[0].partition("msg:")[2]
    return [line.strip(" -|'") for line in text.splitlines() if line.strip(" -|'")]


def test_what_no_pair_of_the_run_can_use_is_refused(tmp_path: Path) -> None:
    code, output = run(tmp_path, "-e", "gpu_memory_utilization=0.8")

    assert code != 0
    (line,) = [" ".join(message(output, "spark-a"))]
    assert (
        "gpu_memory_utilization is given by -e and no pair of this run has it: it belongs to engine vllm"
        in line
    )
    assert "and they serve with tensorfold" in line


def test_what_one_pair_of_the_run_can_use_is_ignored_for_the_others(tmp_path: Path) -> None:
    mixed = INVENTORY + STATIONS
    code, output = run(tmp_path, "-e", "gpu_memory_utilization=0.8", inventory=mixed)

    assert code == 0, output
    assert "ignored, as engine tensorfold lacks them: gpu_memory_utilization" in " ".join(output.split())


def test_settings_become_facts_without_a_connection(tmp_path: Path) -> None:
    code, output = run(tmp_path, "--check", "-e", "parallel={{ half }}")
    assert code == 0, output
    assert "pair1 rank 0 parallel 2  0.5.0" in output
    assert "pair1 rank 1 parallel 2 /mnt/hf 0.5.0" in output
    assert "changed=0" in output


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        (
            ["restrt=true", "restart=banana"],
            [
                "restart is 0 or 1, not 'banana' (true, false, yes and no are taken too)",
                "restrt is not a setting: did you mean restart?",
            ],
        ),
        (
            ["stat=absent", "state=gone"],
            ["stat is not a setting: did you mean state?", "state is 'gone': it takes present or absent"],
        ),
        (
            ["state=absent", "kv=int8"],
            [
                "state is 'absent': only the fabric can be put back as it was, by "
                "ansible-playbook playbooks/fabric.yml -e state=absent",
                "kv is 'int8': it takes fp8 or bf16",
            ],
        ),
        (
            ["rotate_key=true", "rotate_keys=soon"],
            [
                "rotate_keys is 0 or 1, not 'soon' (true, false, yes and no are taken too)",
                "rotate_key is not a setting: did you mean rotate_keys?",
            ],
        ),
        (
            ["parallel=banana", "paralel=2", "context=2000000", "kv=int8"],
            [
                "paralel is not a setting: did you mean parallel?",
                "parallel is 'banana': it takes a whole number from 1 to 4 (release v1.1)",
                "context is 2000000: it takes a whole number from 0 to 1048576 (release v1.1)",
                "kv is 'int8': it takes fp8 or bf16",
            ],
        ),
        (
            ["paralel=2", "drafter=mtp", "parallel=4", "context=2000000", "kv=int8"],
            [
                "paralel is not a setting: did you mean parallel?",
                "context is 2000000: it takes a whole number from 0 to 1048576 (release v1.1)",
                "kv is 'int8': it takes fp8 or bf16",
                "parallel 4 needs drafter dflash2 (mtp serves one request at a time)",
            ],
        ),
    ],
)
def test_the_head_tells_all_faults_at_once(tmp_path: Path, arguments: list[str], faults: list[str]) -> None:
    code, output = run(tmp_path, *(word for argument in arguments for word in ("-e", argument)))
    assert code != 0
    assert message(output, "spark-a") == ["settings are refused (pair1):", *faults]
    assert message(output, "spark-b") == ["spark-a says what is wrong with the settings of pair1"]


def test_a_worker_that_runs_alone_tells_them_itself(tmp_path: Path) -> None:
    code, output = run(tmp_path, "-e", "copy_max=16", "--limit", "spark-b")
    assert code != 0
    assert message(output, "spark-b") == ["copy_max is 16: it takes a whole number from 1 to 15"]


def test_no_secret_is_shown_however_loud_the_run(tmp_path: Path) -> None:
    for arguments in (["-vvv"], ["-vvv", "-e", "kv=int8"]):
        _code, output = run(tmp_path, *arguments)
        assert "Check the settings" in output
        assert "hf_secret" not in output
