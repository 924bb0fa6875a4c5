"""The report of a sweep, as people and programs read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.filter import bench
from ansible_collections.twinserve.pair.plugins.module_utils.benchmark import report
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import engine_names, load_product
from test_bench_plan import CONFIG, DATASET, NAMES, SETTINGS, made

GOLDEN = Path(__file__).parent / "golden/bench-report.md"
REFERENCE = load_product("vllm").engine["reference"]
ABOUT: dict[str, Any] = {
    "title": "GLM on 2 x NVIDIA GB300",
    "subtitle": "vllm 0.30.0, release glm; SPEED-Bench coding, AIPerf 0.13.0",
    "note": "",
    "parallel": 16,
    "effective": {"rails": 2, "window": 1048576, "pool_tokens": None},
    "configuration": [["pair", "pair1"], ["engine", "vllm 0.30.0"]],
    "command": ["vllm", "serve", '{"a":1}'],
    "environment": {"HF_HUB_OFFLINE": "1"},
    "reference": REFERENCE,
}


def level(concurrency: int, throughput: float, **changes: Any) -> dict[str, Any]:
    spread = {"mean": 10.0, "p50": 9.0, "p90": 12.0, "p99": 15.5}
    return {
        "concurrency": concurrency,
        "requests": 80,
        "seconds": 100.0,
        "throughput": throughput,
        "throughput_per_user": throughput / concurrency,
        "requests_per_second": 0.8,
        "latency_s": spread,
        "ttft_ms": spread,
        "itl_ms": spread,
        "prompt_tokens": 60.0,
        "reply_tokens": 5500.0,
        "cached_percent": 0.0,
        "began": "2026-11-30T10:00:00",
        "others": 0,
        "busy": False,
        "effective": ABOUT["effective"],
        **changes,
    }


LEVELS = [level(16, 607.8), level(1, 107.4), level(32, 385.0)]


def written(levels: list[dict[str, Any]], **about: Any) -> dict[str, Any]:
    plan = made(DATASET, bench_concurrency=[1, 8, 16, 32])
    return report.document({**plan, "about": {**ABOUT, **about}}, levels)


def test_the_whole_report_reads_like_this() -> None:
    failed = {"concurrency": 8, "fault": "3 of 80 requests failed: time is up"}
    text = report.markdown(written([*LEVELS, failed], note="Two borrowed machines"))
    assert text == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        ([], "nothing was measured"),
        (LEVELS, "throughput peaks at concurrency 16: 607.8 tokens/s"),
        ([level(1, 100), level(8, 100)], "throughput peaks at concurrency 1: 100.0 tokens/s"),
        ([level(4, 50)], "throughput peaks at concurrency 4: 50.0 tokens/s"),
        (
            [level(1, 100), level(8, 300)],
            "throughput peaks at concurrency 8: 300.0 tokens/s, "
            "the highest that was measured: it may lie above",
        ),
    ],
)
def test_the_peak_is_named(levels: list[dict[str, Any]], says: str) -> None:
    assert report.peak_words(written(levels)) == says


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, ""),
        ({"concurrency": 32}, "decodes 16 requests at once: of 32 some waited"),
        ({"cached_percent": 42.4}, "still knew from before: 42% at 1"),
        ({"others": 5}, "5 requests of others ran during concurrency 1"),
        ({"others": None}, "Whether requests of others ran during concurrency 1 is not known"),
        ({"busy": True}, "Requests of others were allowed to run meanwhile at concurrency 1"),
        ({"began": "2026-11-29T10:00:00"}, "Measured on different days"),
        ({"effective": {**ABOUT["effective"], "rails": 1}}, "restarted between: rails 1 at 1, rails 2 at 8."),
        ({"effective": {**ABOUT["effective"], "window": 8192}}, "window 8192 at 1, window 1048576 at 8."),
    ],
)
def test_what_makes_numbers_differ_is_said(changes: dict[str, Any], says: str) -> None:
    remarks = written([level(1, 100) | changes, level(8, 300)])["remarks"]
    assert (len(remarks) > 3) is (says != "")
    assert says in " ".join(remarks)


def test_a_sweep_of_which_a_part_is_missing_says_so() -> None:
    assert "Not measured yet: concurrency 8, 16, 32." in report.markdown(written([level(1, 100)]))


def test_without_reference_or_measurements_it_is_a_report_all_the_same() -> None:
    text = report.markdown(written([], reference=None))
    assert "There is none for this engine." in text
    assert "report.png" not in text


def test_the_terminal_gets_a_line_for_each_concurrency() -> None:
    lines = report.screen(written([*LEVELS, {"concurrency": 8, "fault": "cut"}]), "/r")
    assert [line.split()[1] for line in lines if "tokens/s  latency" in line] == ["1", "16", "32"]
    assert "  concurrency   8  failed: cut" in lines
    assert "/r/report.md" in lines[-1]


NODE: dict[str, Any] = {
    "pair_config": CONFIG,
    "rank_plan": {
        "image": "example/engine@sha256:00",
        "command": ["serve", f"/c/hub/models--org--glm/snapshots/{'a' * 40}", "--parallel", "4"],
        "env": {"A": "1"},
    },
    "gpu": {"names": ["NVIDIA RTX PRO 2000", "NVIDIA GB300"], "driver": "580.95"},
    "kernel": "6.17",
    "state": {"effective": {"window": 1048576, "pool_tokens": None, "rails": 2}},
}
RELEASE: dict[str, Any] = {
    "release": "v1.1",
    "engine_version": "0.5.0",
    "gpu_name": "GB300",
    "reference": REFERENCE,
}


def told(release: dict[str, Any] = RELEASE, node: dict[str, Any] = NODE) -> dict[str, Any]:
    plan = bench.make([node, {**node, "pair_config": None}], SETTINGS, release, NAMES, None, "0.13.0")
    return dict(plan["about"])


def test_the_report_tells_of_what_is_deployed() -> None:
    found = told()
    assert found["title"] == "GLM on 2 x NVIDIA GB300"
    assert found["subtitle"] == "tensorfold 0.5.0, release v1.1; synthetic coding tasks, AIPerf 0.13.0"
    rows = dict(found["configuration"])
    assert rows["models"] == "org/glm@aaaaaaaa"
    assert (rows["window"], rows["rails"], rows["driver"]) == ("1048576", "2", "580.95")
    assert "pool tokens" not in rows
    assert found["effective"] == {"window": 1048576, "pool_tokens": None, "rails": 2}
    assert (found["command"][0], found["environment"]) == ("serve", {"A": "1"})


@pytest.mark.parametrize(
    ("command", "env", "told_command", "told_env"),
    [
        (["serve", "--api-key", "two words"], {}, ["serve", "--api-key", "[removed]"], {}),
        (["serve", "--api-key=sesame"], {}, ["serve", "--api-key=[removed]"], {}),
        (["serve", "--port", "8888"], {"A_TOKEN": "two words"}, None, {"A_TOKEN": "[removed]"}),
        (["--max-tokens", "8000", "--use-api-key", "--x"], {"NCCL_IB_HCA": "=mlx5_0"}, None, None),
        (
            [],
            {"HTTPS_PROXY": "http://me:sesame@proxy:3128"},
            None,
            {"HTTPS_PROXY": "http://me:[removed]@proxy:3128"},
        ),
    ],
)
def test_no_secret_of_the_engine_is_told(
    command: list[str], env: dict[str, str], told_command: list[str] | None, told_env: dict[str, str] | None
) -> None:
    """None: as it is."""
    found = told(node={**NODE, "rank_plan": {**NODE["rank_plan"], "command": command, "env": env}})
    assert found["command"] == (command if told_command is None else told_command)
    assert found["environment"] == (env if told_env is None else told_env)


def test_a_part_of_speed_bench_is_in_the_subtitle_too() -> None:
    given = {**SETTINGS, "bench_requests": 12}
    plan = bench.make([NODE, NODE], given, RELEASE, NAMES, DATASET, "0.13.0")
    assert "SPEED-Bench coding (12 of 80), AIPerf" in plan["about"]["subtitle"]
    assert "12 of its 80 conversations" in report.document(plan, LEVELS)["remarks"][0]


def test_the_engines_version_is_told_of_the_deployed_release_only() -> None:
    """The settings may name another one since."""
    assert told({**RELEASE, "release": "v1.2"})["subtitle"].startswith("tensorfold, release v1.1;")


def test_an_unknown_gpu_is_told_as_such() -> None:
    assert told(node={**NODE, "gpu": None})["title"] == "GLM on 2 x unknown GPU"


PUBLISHED = [name for name in engine_names() if "reference" in load_product(name).engine]


@pytest.mark.parametrize("engine", PUBLISHED)
def test_published_results_have_the_names_that_report_and_plots_read(engine: str) -> None:
    reference = load_product(engine).engine["reference"]
    known = {"concurrency", "throughput", "throughput_per_user", "latency_s", "ttft_ms", "itl_ms"}
    for series in reference["series"]:
        assert {"concurrency", "throughput"} <= set(series["points"][0])
        assert {name for point in series["points"] for name in point} <= known
    assert {"title", "conditions", "series"} <= set(reference)
