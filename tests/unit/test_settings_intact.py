"""What a person writes reaches the container as written; what is taken away returns to its default."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.docker_argv import docker_argv
from ansible_collections.twinserve.pair.plugins.module_utils.render import pair_config
from engine_data import LINKS, NODES, PRODUCT, faults, plans, settings

ROOT = Path(__file__).resolve().parents[2]
# Blanks, both quotes, a backslash, what shells and templates would replace, a newline, another script.
HARD = "a  b 'c' \"d\" \\e $HOME ${kv} `id` {x} %i ; & | * é 字\nf"


@pytest.mark.parametrize(
    ("raw", "variable", "text"),
    [
        ({"copy_code": True}, "TF_GLM_WIDE_GRAPHS", "16"),
        ({"copy_code": "yes"}, "TF_GLM_WIDE_GRAPHS", "16"),
        ({"split": False}, "TF_GLM_HC_SPLIT", "0"),
        ({"shared_prefix": "off"}, "TF_GLM_SHARED_PREFIX", "0"),
        ({"engine_env": {"TF_GLM_MULTI_LONE": True}}, "TF_GLM_MULTI_LONE", "1"),
        ({"engine_env": {"MINE": False}}, "MINE", "0"),
        ({"engine_env": {"MINE": 12.50}}, "MINE", "12.5"),
        ({"engine_env": {"MINE": 1e6}}, "MINE", "1000000"),
        ({"engine_env": {"MINE": "1e6"}}, "MINE", "1e6"),
        ({"engine_env": {"MINE": "0o17"}}, "MINE", "0o17"),
        ({"kv_pool_gib": 12.50}, "TF_GLM_CACHE_GIB", "12.5"),
        ({"kv_pool_gib": "12.50"}, "TF_GLM_CACHE_GIB", "12.5"),
        ({"kv_pool_gib": 11.0}, "TF_GLM_CACHE_GIB", "11"),
    ],
)
def test_k01_switches_and_numbers_reach_the_engine_in_one_form(
    raw: dict[str, Any], variable: str, text: str
) -> None:
    assert [plan["env"][variable] for plan in plans(**raw)] == [text, text]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"split": 2}, "split is 0 or 1, not 2 (true, false, yes and no are taken too)"),
        (
            {"engine_env": {"TF_GLM_MULTI_LONE": 2}},
            "engine_env: TF_GLM_MULTI_LONE is '2': it takes 0 or 1",
        ),
        # YAML reads digits as a number, in whatever base they look like.
        (
            {"model_revision": 7855 * 10**35},
            f"model_revision must be a quoted string of 40 hex digits, not 7855{'0' * 35}",
        ),
        ({"image_digest": 1e10}, "image_digest is 10000000000.0: it takes sha256 and 64 hex digits"),
        ({"context": "1e6"}, "context is '1e6': it takes a whole number from 0 to 1048576 (release v1.1)"),
        ({"context": "0o17"}, "context is '0o17': it takes a whole number from 0 to 1048576 (release v1.1)"),
        ({"kv_pool_gib": True}, "kv_pool_gib is true: it takes a number of 0.5 or more"),
    ],
)
def test_k01_what_has_lost_its_form_is_refused(raw: dict[str, Any], message: str) -> None:
    assert faults(**raw) == [message]


def test_k03_one_request_at_a_time_is_what_mtp_serves() -> None:
    assert settings(drafter="mtp")["parallel"] == 1
    assert faults(drafter="mtp", parallel=4) == [
        "parallel 4 needs drafter dflash2 (mtp serves one request at a time)"
    ]
    assert faults(drafter="mtp", extra_args="--parallel 2") == [
        "parallel 2 needs drafter dflash2 (mtp serves one request at a time)"
    ]
    assert settings("v1.10", drafter="mtp")["parallel"] == 1


def test_k12_a_setting_that_is_taken_away_leaves_nothing_behind() -> None:
    extra = {
        "served_name": "mine",
        "nccl_debug": "INFO",
        "engine_env": {"MINE": "1"},
        "extra_args": "--top-k 5",
    }
    deployed, again = plans(**extra), plans()
    assert again == plans(served_name="", nccl_debug=None, engine_env={}, extra_args=[])
    for before, after in zip(deployed, again, strict=True):
        assert set(before["env"]) - set(after["env"]) == {"NCCL_DEBUG", "MINE"}
        assert before["digest"] != after["digest"]
    release, head = PRODUCT.release("v1.1"), again[0]["command"]
    assert head[head.index("--name") + 1] == "GLM-5.3-Flash-EXL3"
    assert pair_config(again, settings(), release, NODES)["served_name"] == "GLM-5.3-Flash-EXL3"


def test_texts_of_any_kind_come_through_to_dockers_command_line() -> None:
    raw = {"engine_env": {"MINE": HARD}, "extra_args": ["--chat-template", HARD]}
    for plan, link in zip(plans(**raw), LINKS, strict=True):
        # As the node reads it: through the plan's file.
        argv = docker_argv(json.loads(json.dumps(plan)), link)
        assert f"MINE={HARD}" in argv
        assert argv[-2:] == ["--chat-template", HARD]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"engine_env": {"A": "1", "B": "2"}}, {"engine_env": {"B": "2", "A": "1"}}),
        ({"engine_env": {"A": 1}}, {"engine_env": {"A": "1", "C": ""}}),
        ({"extra_args": "--top-k 5 --title 'x y'"}, {"extra_args": ["--top-k", 5, "--title", "x y"]}),
        ({"parallel": "4", "split": "yes"}, {}),
        ({"canary_interval": 10, "wait_timeout": 900, "drain_timeout": 5, "model_verify": "sha256"}, {}),
    ],
)
def test_order_and_spelling_restart_nothing(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert [plan["digest"] for plan in plans(**one)] == [plan["digest"] for plan in plans(**other)]


INVENTORY = """
sparks:
  vars: {accept_dflash2_license: true, context: 4096, max_images: 1, hf_cache: /of/all}
  children:
    pair1:
      vars: {context: 8192, hf_cache: /of/the/pair}
      hosts:
        spark-a: {rank: 0}
        spark-b: {rank: 1, hf_cache: /of/the/host}
"""
PLAY = """
- hosts: sparks
  gather_facts: false
  tasks:
    - name: Check the settings
      twinserve.pair.settings:
    - name: Show
      ansible.builtin.copy:
        content: "{{ ansible_facts.twinserve_settings | to_json }}"
        dest: "{{ playbook_dir }}/{{ inventory_hostname }}.json"
        mode: "0644"
      delegate_to: localhost
      connection: local
"""


def run(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """The settings of both hosts as a run sees them."""
    (folder / "hosts.yml").write_text(INVENTORY)
    (folder / "play.yml").write_text(PLAY)
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", "hosts.yml", "play.yml", *arguments],
        cwd=folder, env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads((folder / f"{host}.json").read_text()) for host in ("spark-a", "spark-b")]


def test_the_nearest_wins_group_pair_host_and_command_line(tmp_path: Path) -> None:
    head, worker = run(tmp_path)
    assert (head["max_images"], head["context"], worker["context"]) == (1, 8192, 8192)
    assert (head["hf_cache"], worker["hf_cache"]) == ("/of/the/pair", "/of/the/host")

    both = run(
        tmp_path, "-e", "context=2048", "-e", "hf_cache=/said", "-e", "extra_args=\"--title 'b  c' --x\""
    )
    assert [(one["context"], one["hf_cache"]) for one in both] == [(2048, "/said")] * 2
    assert [one["extra_args"] for one in both] == [["--title", "b  c", "--x"]] * 2


def test_a_variable_and_an_argument_from_the_command_line_are_not_taken_apart(tmp_path: Path) -> None:
    said = {"engine_env": {"MINE": HARD.replace("{x}", "")}, "extra_args": ["--title", HARD]}
    for one in run(tmp_path, "-e", json.dumps(said)):
        assert (one["engine_env"], one["extra_args"]) == (said["engine_env"], said["extra_args"])
