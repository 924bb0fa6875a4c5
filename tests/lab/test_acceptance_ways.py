"""The ways in which owners run the API's checks, against the simulated engine on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import testinfra
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.suite import NAMES
from ansible_collections.twinserve.pair.plugins.modules import api_suite
from engine_support import Pair, running_pair
from live_pair import Pair as LivePair
from live_pair import catalogue_promise, check_on_head
from module_run import run_module

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("models", "chat", "tool_call", "image_webp", "messages")


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running_pair(tmp_path_factory.mktemp("ways")) as made:
        made.up()
        yield made


@pytest.fixture
def pair(serving: Pair) -> Iterator[Pair]:
    """The same pair; its switches are cleared afterwards."""
    yield serving
    serving.machines[0].switch()


def base(pair: Pair) -> str:
    return f"http://127.0.0.1:{pair.api}"


def by_url(pair: Pair, *words: str, key: str = "") -> subprocess.CompletedProcess[str]:
    """Run pytest as the README says."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/acceptance", *words]
    argv += [f"--api-url={base(pair)}", "--promise=served_name=sim"]
    env = {**os.environ, "TWINSERVE_API_KEY": key}
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_by_url_and_key_alone_a_named_check_passes_and_fails(pair: Pair) -> None:
    pair.machines[0].switch(api_key="s3cret")
    some = ("-k", "test_api and (models or tool_call or image_webp)")
    with_key = by_url(pair, *some, key="s3cret")
    assert (with_key.returncode, "4 passed" in with_key.stdout) == (0, True), with_key.stdout
    without = by_url(pair, *some)
    assert (without.returncode, "4 failed" in without.stdout) == (1, True), without.stdout
    pair.machines[0].switch(api_key="s3cret", blind=True)
    blind = by_url(pair, *some, key="s3cret")
    assert "1 failed, 3 passed" in blind.stdout and "test_api[api-image_webp]" in blind.stdout, blind.stdout
    assert "s3cret" not in with_key.stdout + without.stdout + blind.stdout


def test_by_url_a_release_and_settings_say_what_is_promised(pair: Pair) -> None:
    newer = by_url(pair, "-k", "test_api and messages", "--release=v1.9")
    assert "POST /v1/messages answered 404" in newer.stdout, newer.stdout
    blind = by_url(pair, "-k", "test_api and image_png", "--promise=vision=false")
    assert (blind.returncode, "images and video are off" in blind.stdout) == (0, True), blind.stdout
    assert catalogue_promise("v1.10", ["parallel=2"])["parallel"] == 2
    with pytest.raises(ValueError, match="parallel"):
        catalogue_promise(None, ["parallel=90"])


def test_without_a_pair_it_is_said_how_to_name_one() -> None:
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/acceptance"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "say where the pair is: --hosts, --ansible-inventory or --api-url" in done.stdout + done.stderr


def test_on_the_head_its_own_python_asks_with_the_checks_that_come_along(pair: Pair) -> None:
    promise = catalogue_promise("v1.1", ["served_name=sim"])
    config = {"api": {"host": "127.0.0.1", "port": pair.api}, "promise": promise}
    live = LivePair((testinfra.get_host("local://"),), config)
    for name in QUICK:
        assert check_on_head(live, name) == {"name": name, "result": "passed", "text": ""}
    pair.machines[0].switch(untyped_arguments=True)
    assert "other types" in check_on_head(live, "tool_call")["text"]


def suite(pair: Pair, capsys: pytest.CaptureFixture[str], **args: Any) -> dict[str, Any]:
    promise = catalogue_promise("v1.1", ["served_name=sim"])
    return run_module(api_suite, capsys, **{"base": base(pair), "promise": promise, **args})


def test_the_module_passes_and_names_what_was_not_kept(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = suite(pair, capsys, only=list(QUICK))
    assert (whole["failed"], whole["changed"]) == (False, False)
    assert whole["summary"] == ["5 of 5 checks passed"]
    pair.machines[0].switch(blind=True)
    broken = suite(pair, capsys, only=list(QUICK))
    assert broken["failed"] and broken["msg"].startswith("1 of 5 checks failed:\n  image_webp: ")
    assert broken["summary"][0] == "4 of 5 checks passed"


def test_the_module_runs_all_checks_unless_told_which(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    pair.machines[0].switch(decode_tokens_per_s=100)
    found = suite(pair, capsys)
    assert not found["failed"], found["msg"]
    assert [one["name"] for one in found["results"]] == list(NAMES)
    assert {one["name"] for one in found["results"] if one["result"] == "skipped"} == {
        "chunked_body", "full_server", "key_required", "tool_choice_named", "tool_choice_required",
        "vision_off",
    }  # fmt: skip


def test_the_module_asks_nothing_in_check_mode(capsys: pytest.CaptureFixture[str]) -> None:
    promise = catalogue_promise("v1.1", [])
    found = run_module(
        api_suite, capsys, check=True, base="http://127.0.0.1:9", promise=promise, only=["chat"]
    )
    assert found["summary"] == ["not asked in check mode: chat"]


def test_the_module_refuses_unknown_checks_and_says_when_nothing_serves(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    assert suite(pair, capsys, only=["chatt"])["msg"].startswith("no check is named chatt; there are ")
    assert suite(pair, capsys, base="http://127.0.0.1:9")["msg"].startswith("nothing serves at http://127.0")
