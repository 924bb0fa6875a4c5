"""The role benchmark before it touches anything: what it refuses and says, what check mode leaves alone."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible import constants
from ansible_collections.twinserve.pair.plugins.lookup.pip import LookupModule
from ansible_collections.twinserve.pair.plugins.modules import bench_host
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import load_product
from module_run import run_module
from plays import PAIRS, Ran, play
from test_bench_plan import CONFIG, ROLE, SETTINGS

MORE = {"bench_host": None, "bench_dataset": None, "bench_python": "python3", "bench_wheels": None}
MEASURE = {"name": "Measure", "ansible.builtin.include_role": {"name": "benchmark"}}


def bench(folder: Path, *words: str, serves: str = "serving", **settings: Any) -> Ran:
    """Run the role's part of the head against this machine."""
    head, worker = PAIRS["pair1"]
    pair = {"hosts": [head, worker], "head": head, "name": "pair1"}
    release = {"release": "v1.1", "reference": load_product("tensorfold").engine["reference"]}
    given = {**SETTINGS, **MORE, "bench_api_key_given": False, "proxy_env_given": False, **settings}
    told = {
        "name": "Say what is known",
        "ansible.builtin.set_fact": {
            "cacheable": True,
            "twinserve_pair": {**pair, "rank": "{{ rank }}"},
            "twinserve_settings": given,
            "twinserve_release": release,
        },
    }
    node = {"pair_config": CONFIG, "state": {"state": serves}, "rank_plan": None}
    facts: dict[str, dict[str, Any]] = {head: node, worker: {"pair_config": None}}
    become = ("-e", json.dumps({"ansible_become": False}))
    return play(folder, [told, MEASURE], facts, "--limit", "pair1", *become, *words)


def test_check_mode_says_what_would_be_measured_and_touches_nothing(tmp_path: Path) -> None:
    ran = bench(tmp_path, "--check")
    assert ran.code == 0, ran.output
    assert "concurrency 1, 2, 4: 80 requests each" in ran.output
    assert "not SPEED-Bench" in " ".join(ran.output.split())
    assert not Path("/var/lib/twinserve/benchmark/runs").exists()


def test_check_mode_shows_it_of_a_pair_that_is_stopped_too(tmp_path: Path) -> None:
    assert bench(tmp_path, "--check", serves="stopped").code == 0
    ran = bench(tmp_path, serves="stopped")
    assert (ran.code, "the pair does not serve (stopped)" in ran.output) == (2, True), ran.output


def test_a_bad_file_of_prompts_ends_it_before_anything_is_installed(tmp_path: Path) -> None:
    file = tmp_path / "qualitative.jsonl"
    file.write_text("{}\n")
    ran = bench(tmp_path, bench_dataset=str(file))
    assert (ran.code, "lacks question_id" in ran.output) == (2, True), ran.output
    assert "Have AIPerf" not in ran.output


@pytest.mark.parametrize(
    ("python", "found"), [("python3", True), ("/bin/false", False), ("no-such-program", False)]
)
def test_the_machine_tells_which_python_it_has(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, python: str, found: bool
) -> None:
    answer = run_module(bench_host, capsys, version="0.0.0", pins="", python=python, folder=str(tmp_path))
    assert (answer["python"] != "", answer["ready"], answer["kept"]) == (found, False, [])
    assert answer["available_gib"] > 0


def test_the_machine_tells_what_was_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    results = {
        "0004": {"concurrency": 4, "others": 0},
        "0001": {"concurrency": 1, "others": 0},
        "0002": {"concurrency": 2, "others": 5},
        "0008": {"concurrency": 8, "fault": "x"},
    }
    for name, result in results.items():
        (tmp_path / f"concurrency-{name}").mkdir()
        (tmp_path / f"concurrency-{name}/result.json").write_text(json.dumps(result))
    (tmp_path / "concurrency-0016").mkdir()  # under way
    answer = run_module(bench_host, capsys, version="0.0.0", pins="", folder=str(tmp_path))
    assert answer["kept"] == [1, 4]
    answer = run_module(bench_host, capsys, version="0.0.0", pins="", folder=str(tmp_path), while_busy=True)
    assert answer["kept"] == [1, 2, 4]


def test_pip_is_never_there_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs' forks pack it at the same time, into the same folder."""
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    (path,) = LookupModule().run([])
    before = Path(path).stat().st_ino
    LookupModule().run([])
    assert Path(path).stat().st_ino != before, "it was written in place"
    assert list(tmp_path.iterdir()) == [Path(path)]


def test_pip_is_packed_so_that_another_python_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    (path,) = LookupModule().run([])
    names = zipfile.ZipFile(path).namelist()
    assert {"pip/__main__.py", "pip/_internal/cli/main.py"} <= set(names)
    assert [name for name in names if "__pycache__" in name] == []


def test_what_is_secret_lies_where_every_machine_has_a_folder() -> None:
    """A third machine has no /run/twinserve yet."""
    known = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    assert str(Path(known["__benchmark_secrets"]).parent) == "/run"
