"""What the benchmark measures, from where, and how AIPerf is called for it."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.twinserve.pair.plugins.filter import bench
from ansible_collections.twinserve.pair.plugins.module_utils import jobs
from ansible_collections.twinserve.pair.plugins.module_utils.benchmark import aiperf, install, plan

ROLE = Path(__file__).resolve().parents[2] / "roles/benchmark"
CONFIG: dict[str, Any] = {
    "pair": "pair1",
    "engine": "tensorfold",
    "release": "v1.1",
    "served_name": "GLM",
    "digest": "sha256:one",
    "api": {"bind": "127.0.0.1", "host": "127.0.0.1", "port": 8888},
    "promise": {"parallel": 4},
    "canary_interval": 60,
}
SETTINGS: dict[str, Any] = {
    "bench_url": None,
    "bench_concurrency": None,
    "bench_requests": 80,
    "bench_warmup": None,
    "bench_max_tokens": None,
    "bench_while_busy": False,
    "bench_note": None,
}
DATASET = {"sha256": "ab" * 32, "rows": 80}
NAMES = {"head": "spark-a", "host": "spark-a", "management": "192.0.2.11"}


def made(
    dataset: dict[str, Any] | None = None,
    host: str = "spark-a",
    config: dict[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    given = {**SETTINGS, **settings}
    return plan.make({**CONFIG, **(config or {})}, given, dataset, "http://127.0.0.1:8888", host, "0.13.0")


@pytest.mark.parametrize(
    ("given", "parallel", "counts"),
    [
        (None, 1, [1]),
        (None, 3, [1, 2, 3]),
        (None, 4, [1, 2, 4]),
        (None, 8, [1, 2, 4, 8]),
        ([32, 8, 1, 8], 4, [1, 8, 32]),
    ],
)
def test_it_goes_up_to_what_the_pair_decodes_at_once_or_what_is_given(
    given: list[int] | None, parallel: int, counts: list[int]
) -> None:
    assert plan.concurrencies(given, parallel) == counts


def test_more_concurrencies_belong_to_the_same_sweep() -> None:
    """What is finished of a shorter one is kept for the longer."""
    assert made(bench_concurrency=[1, 8])["id"] == made(bench_concurrency=[1, 8, 16])["id"]


@pytest.mark.parametrize(
    "other",
    [
        made(config={"digest": "sha256:two"}),
        made(DATASET),
        made({**DATASET, "sha256": "cd" * 32}),
        made(bench_requests=81),
        made(bench_warmup=0),
        made(bench_max_tokens=100),
        made(host="spark-b"),
    ],
    ids=["configuration", "prompts", "other prompts", "requests", "warm-up", "length", "machine"],
)
def test_nothing_is_kept_for_another_configuration_dataset_or_load(other: dict[str, Any]) -> None:
    assert other["id"] != made()["id"]


def test_the_warm_up_is_as_wide_as_the_measurement_unless_it_is_given() -> None:
    assert [one["warmup"] for one in made(bench_concurrency=[1, 8])["levels"]] == [1, 8]
    assert [one["warmup"] for one in made(bench_concurrency=[1, 8], bench_warmup=0)["levels"]] == [0, 0]


def test_a_synthetic_set_is_named_so() -> None:
    said = "\n".join(plan.words(made(), [], False))
    assert "not SPEED-Bench" in said
    assert "512 tokens" in said
    assert "SPEED-Bench coding, 80 conversations" in "\n".join(plan.words(made(DATASET), [], False))


def test_a_part_of_speed_bench_is_named_so() -> None:
    said = "\n".join(plan.words(made(DATASET, bench_requests=12), [], False))
    assert "12 of its 80 conversations" in said
    assert "not comparable" in said


def test_what_is_kept_is_told_before() -> None:
    assert "not again: concurrency 1, 4" in plan.words(made(), [1, 4, 16], False)[-1]
    assert "again" not in "\n".join(plan.words(made(), [1, 4], True))


def fault(
    api: dict[str, Any] | None = None, host: str = "spark-a", url: str | None = None, **probe: Any
) -> str:
    config = {**CONFIG, "api": {**CONFIG["api"], **(api or {})}}
    head = {"pair_config": config, "state": {"state": "serving"}, **probe}
    settings = {**SETTINGS, "bench_url": url}
    return bench.fault(head, settings, {**NAMES, "host": host}, ["spark-a", "spark-b", "client"])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, ""),
        ({"host": "client", "api": {"bind": "0.0.0.0"}}, ""),
        ({"host": "localhost", "url": "http://127.0.0.1:9999/v1"}, ""),
        ({"host": "client"}, "loopback only: leave bench_host unset"),
        ({"host": "spark-b"}, "loopback only"),
        ({"host": "nobody"}, "bench_host is 'nobody': it takes a host of the inventory, or localhost"),
        ({"pair_config": None}, "nothing is deployed"),
        ({"pair_config": None, "url": "http://127.0.0.1:9999"}, "nothing is deployed"),
        ({"state": {"state": "loading"}}, "does not serve (loading)"),
        ({"state": None}, "does not serve (stopped)"),
        ({"state": {"state": "serving", "digest": "sha256:older"}}, "run serve.yml -e restart=true"),
        ({"state": {"state": "serving", "digest": "sha256:one"}}, ""),
    ],
)
def test_what_cannot_be_measured_is_refused_with_the_way_out(given: dict[str, Any], says: str) -> None:
    assert says in fault(**given)
    assert (fault(**given) == "") is (says == "")


@pytest.mark.parametrize(
    ("host", "url", "asked"),
    [
        ("spark-a", None, "http://127.0.0.1:8888"),
        ("client", None, "http://192.0.2.11:8888"),
        ("client", "https://gate.example/v1/", "https://gate.example"),
    ],
)
def test_the_head_asks_its_loopback_and_others_its_address(host: str, url: str | None, asked: str) -> None:
    config = {**CONFIG, "api": {**CONFIG["api"], "bind": "0.0.0.0"}}
    assert plan.address(config, host == "spark-a", url, "192.0.2.11") == asked


def test_an_ipv6_address_has_brackets() -> None:
    config = {**CONFIG, "api": {"bind": "::", "host": "::1", "port": 8888}}
    assert plan.address(config, True, None, "2001:db8::1") == "http://[::1]:8888"
    assert plan.address(config, False, None, "2001:db8::1") == "http://[2001:db8::1]:8888"


@pytest.mark.parametrize(
    ("python", "ready", "says"),
    [
        ("3.12.3", False, ""),
        ("3.13.5", False, ""),
        ("3.10.12", False, "spark-a has 3.10.12"),
        ("3.14.0", False, "spark-a has 3.14.0"),
        ("", False, "none by that name"),
        ("3.14.0", True, ""),
    ],
)
def test_aiperf_needs_one_of_three_pythons(python: str, ready: bool, says: str) -> None:
    said = bench.tool_fault({"python": python, "ready": ready}, "spark-a")
    assert says in said
    assert (said == "") is (says == "")


@pytest.mark.parametrize(
    ("gib", "host", "says"),
    [
        (6.0, "spark-a", ""),
        (5.94, "spark-a", "spark-a has 5.9 GiB of memory left, and AIPerf may take 6"),
        (5.94, "client", ""),
    ],
)
def test_a_head_with_little_memory_left_does_not_measure_itself(gib: float, host: str, says: str) -> None:
    said = bench.memory_fault({"available_gib": gib}, host, ["spark-a", "spark-b"])
    assert says in said
    assert (said == "") is (says == "")


def test_the_jobs_of_the_benchmark_are_ended_before_a_rank_is() -> None:
    """As much as the machine has to have left is what they may take."""
    limits = yaml.safe_load((ROLE / "vars/main.yml").read_text())["__benchmark_limits"]
    assert limits == ["OOMScoreAdjust=1000", f"MemoryMax={plan.MEMORY_GIB}G"]


def called(dataset: dict[str, Any] | None = None, **settings: Any) -> list[str]:
    one = made(dataset, **settings)
    return aiperf.argv("/opt/aiperf", one, one["levels"][-1], Path("/runs/x/concurrency-0004"))


def test_aiperf_gets_counts_a_local_tokenizer_and_no_key() -> None:
    assert called() == [
        *("/opt/aiperf", "profile", "--model", "GLM", "--url", "http://127.0.0.1:8888"),
        *("--endpoint-type", "chat", "--streaming", "--use-server-token-count"),
        *("--tokenizer", "/runs/x/concurrency-0004/tokenizer", "--custom-dataset-type", "single_turn"),
        *(
            "--input-file",
            "/runs/x/concurrency-0004/prompts.jsonl",
            "--dataset-sampling-strategy",
            "sequential",
        ),
        *("--extra-inputs", "max_tokens:512", "--extra-inputs", "temperature:0", "--concurrency", "4"),
        *("--request-count", "80", "--warmup-request-count", "4", "--warmup-concurrency", "4"),
        *("--request-timeout-seconds", "3600", "--workers-max", "4"),
        *("--no-gpu-telemetry", "--no-server-metrics", "--ui-type", "none"),
        *("--output-artifact-dir", "/runs/x/concurrency-0004/aiperf"),
    ]


def test_speed_bench_is_counted_in_conversations() -> None:
    words = called(DATASET)
    assert words[words.index("--custom-dataset-type") + 1] == "speed_bench_coding"
    assert words[words.index("--input-file") + 1].endswith("/../speed-bench.jsonl")
    assert words[words.index("--conversation-num") + 1] == "80"
    assert words[words.index("--num-warmup-sessions") + 1] == "4"
    assert "--request-count" not in words


def test_without_warm_up_none_is_asked_for() -> None:
    assert "--warmup-request-count" not in called(bench_warmup=0)


def test_a_key_is_in_aiperfs_environment_alone_and_no_variable_of_the_hub() -> None:
    assert set(aiperf.environment(Path("/x"))) == {"HOME", "PATH", "LANG"}
    assert aiperf.environment(Path("/x"), "sesame")["OPENAI_API_KEY"] == "sesame"


@pytest.mark.parametrize(
    ("dataset", "warmup", "phases"),
    [
        (None, None, [("warmup", "requests", 4), ("profiling", "requests", 80)]),
        (None, 0, [("profiling", "requests", 80)]),
        (DATASET, None, [("warmup", "sessions", 4), ("profiling", "sessions", 80)]),
    ],
)
def test_a_configuration_names_the_keys_variable_and_says_the_same_as_the_command_line(
    tmp_path: Path, dataset: dict[str, Any] | None, warmup: int | None, phases: list[tuple[str, str, int]]
) -> None:
    """AIPerf 0.13 ignores the variable where no configuration names it."""
    one = made(dataset, bench_warmup=warmup)
    level = one["levels"][-1]
    words = aiperf.argv("/opt/aiperf", one, level, tmp_path, keyed=True)
    assert words[words.index("--config") + 1] == str(tmp_path / "key.json")
    assert "--config" not in aiperf.argv("/opt/aiperf", one, level, tmp_path)
    aiperf.lay_down(one, level, tmp_path)
    written = json.loads((tmp_path / "key.json").read_text())["benchmark"]
    assert [one["path"] for one in written["datasets"]] == [words[words.index("--input-file") + 1]]
    assert written["endpoint"]["api_key"] == "${OPENAI_API_KEY}"
    assert [
        (one["name"], kind, one[kind])
        for one in written["phases"]
        for kind in set(one) & {"requests", "sessions"}
    ] == phases
    assert {one["concurrency"] for one in written["phases"]} == {4}


def test_aiperf_finds_enough_prompts_for_warm_up_and_measurement(tmp_path: Path) -> None:
    one = made(bench_requests=5)
    aiperf.lay_down(one, one["levels"][-1], tmp_path)
    assert len((tmp_path / "prompts.jsonl").read_text().splitlines()) == 9
    assert json.loads((tmp_path / "tokenizer/tokenizer.json").read_text())["model"]["type"] == "WordLevel"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of an AIPerf that was installed with the pins `one`; Python and pip are stand-ins."""

    def played(argv: list[str], **_more: object) -> subprocess.CompletedProcess[str]:
        if argv[1:3] == ["-m", "venv"]:
            programs = Path(argv[-1], "bin")
            programs.mkdir(parents=True)
            for name in ("python", "aiperf"):
                (programs / name).touch()
        return subprocess.CompletedProcess(argv, 0)

    monkeypatch.setattr(install, "HOME", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", played)
    pins = tmp_path / "constraints.txt"
    pins.write_text("one\n")
    install.install(install.Order("0.13.0", "python3", "pip.zip", str(pins)))
    return tmp_path / "aiperf-0.13.0"


PINS = hashlib.sha256(b"one\n").hexdigest()


def test_aiperf_is_there_with_the_pins_that_it_was_installed_with(installed: Path) -> None:
    assert install.is_ready("0.13.0", PINS)
    assert not install.is_ready("0.13.0", hashlib.sha256(b"two\n").hexdigest())
    assert not install.is_ready("0.14.0", PINS)


@pytest.mark.parametrize("text", ['{"aiperf": "0.13.0"}\n', '{"aiperf"', "[]\n", ""])
def test_what_an_older_version_of_ours_or_a_loss_of_power_left_is_not_ready(
    installed: Path, text: str
) -> None:
    (installed / "ready.json").write_text(text)
    assert not install.is_ready("0.13.0", PINS)


def test_aiperf_is_there_only_with_its_python(installed: Path) -> None:
    """A system that was upgraded has another one, and the link in the environment leads nowhere."""
    (installed / "bin/python").unlink()
    (installed / "bin/python").symlink_to("/usr/bin/python0.0")
    assert not install.is_ready("0.13.0", PINS)


@pytest.mark.parametrize(
    ("wheels", "words"),
    [
        ("", []),
        ("/srv/wheels", ["--no-index", "--find-links", "/srv/wheels"]),
        (
            "http://192.0.2.1:8080/w/",
            ["--no-index", "--find-links", "http://192.0.2.1:8080/w/", "--trusted-host", "192.0.2.1"],
        ),
        ("https://wheels.example/", ["--no-index", "--find-links", "https://wheels.example/"]),
    ],
)
def test_pip_takes_pinned_parts_from_the_index_or_from_the_wheels(wheels: str, words: list[str]) -> None:
    found = install.pip_words(install.Order("0.13.0", "python3", "/p.zip", "/c.txt", wheels))
    assert found[5:] == [*words, "--constraint", "/c.txt", "aiperf==0.13.0"]


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("ERROR: Failed to build 'crick' when building wheel for crick", "build-essential"),
        ("  crick/tdigest_stubs.c:6:10: fatal error: Python.h: No such file or directory", "python3-dev"),
        ("error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory", "build-essential"),
        ("ERROR: No matching distribution found for crick~=0.0.8", "set bench_wheels"),
        ("ERROR: ResolutionImpossible: for help visit ...", "set bench_wheels"),
        ("NewConnectionError: Failed to establish a new connection: [Errno 101]", "set bench_wheels"),
        ("ERROR: No space left on device", ""),
    ],
)
def test_an_installation_that_fails_is_told_with_what_helps(said: str, advice: str) -> None:
    known = yaml.safe_load((ROLE / "vars/main.yml").read_text())["__benchmark_meanings"]
    state = jobs.JobState("failed", 1, 0, "", 0, [said, "/x/bin/python /p.zip/pip install failed (exit 1)"])
    meaning = jobs.meaning(state, known)
    assert advice in meaning
    assert (meaning == "") is (advice == "")


def test_the_pin_of_the_role_is_that_of_the_constraints() -> None:
    (version,) = [
        line.removeprefix("__benchmark_aiperf: ").split()[0]
        for line in (ROLE / "vars/main.yml").read_text().splitlines()
        if line.startswith("__benchmark_aiperf: ")
    ]
    pins = (ROLE / "files/constraints.txt").read_text().splitlines()
    assert f"aiperf=={version}" in pins
    assert [line for line in pins if not line.startswith("#") and "==" not in line] == []
