"""One inventory, two pairs: what ends the run for one of them ends nothing for the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from plays import PAIRS, ROOT, play

# This machine plays all four hosts: it is looked at, and nothing else.
HERE: dict[str, Any] = {
    "ansible_connection": "local",
    "ansible_python_interpreter": sys.executable,
    "ansible_become": False,
    "prepare": "never",
    "drafter": "mtp",
}


def recap(folder: Path, playbook: str, **refused: Any) -> tuple[dict[str, str], str]:
    """Run a playbook with settings of pair1's worker that are refused; returns the recap by host."""
    groups: dict[str, Any] = {
        pair: {"hosts": {host: {"rank": rank} for rank, host in enumerate(hosts)}}
        for pair, hosts in PAIRS.items()
    }
    groups["pair1"]["hosts"]["spark-b"] |= refused
    inventory = folder / "hosts.yml"
    inventory.write_text(json.dumps({"sparks": {"vars": HERE, "children": groups}}))
    program = Path(sys.executable).with_name("ansible-playbook")
    env = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    argv = [str(program), "-i", str(inventory), str(ROOT / "playbooks" / playbook)]
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
    lines = (
        line.split(" : ") for line in done.stdout.partition("PLAY RECAP")[2].splitlines() if " : " in line
    )
    return {host.strip(): counts for host, counts in lines}, done.stdout


def test_settings_that_are_refused_for_one_pair_do_not_end_the_checks_of_the_other(tmp_path: Path) -> None:
    hosts, output = recap(tmp_path, "preflight.yml", nccl_debug="NONSENSE")

    assert "nccl_debug may not differ between ranks" in output
    assert {host for host, counts in hosts.items() if counts.startswith("ok=1 ")} == {"spark-a", "spark-b"}
    # Its two nodes went on to be looked at, whatever this machine lacks to be one.
    looked = output.partition("TASK [preflight : Look at the node]")[2].partition("TASK [")[0]
    assert [host for host in ("spark-c", "spark-d") if f"[{host}]" in looked] == ["spark-c", "spark-d"]


def test_a_node_that_fails_ends_the_run_for_its_own_pair_before_the_next_thing_is_done(
    tmp_path: Path,
) -> None:
    """As in the middle of site.yml: all were looked at, then one fails."""
    seen: dict[str, dict[str, Any]] = {host: {"hostname": host} for hosts in PAIRS.values() for host in hosts}
    tasks: list[dict[str, Any]] = [
        {
            "name": "Say who is in which pair",
            "ansible.builtin.set_fact": {
                "cacheable": True,
                "twinserve_pair": {"hosts": "{{ pairs | select('contains', inventory_hostname) | first }}"},
            },
        },
        {
            "name": "Do something that fails on one node",
            "ansible.builtin.fail": {"msg": "it broke"},
            "when": "inventory_hostname == 'spark-b'",
        },
        {
            "name": "Begin what the next role does",
            "ansible.builtin.import_role": {"name": "preflight", "tasks_from": "whole"},
        },
        {"name": "Act", "ansible.builtin.debug": {"msg": "acts on {{ inventory_hostname }}"}},
    ]

    ran = play(tmp_path, tasks, seen, "-e", json.dumps({"pairs": list(PAIRS.values())}))

    assert ran.code == 2
    assert "spark-b failed: nothing more is done on spark-a" in ran.output
    acted = [host for host in seen if f"acts on {host}" in ran.output]
    assert acted == ["spark-c", "spark-d"]
