"""The acceptance checks against answers in vLLM's forms: each passes, and fails with its feature broken."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.client import Api
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.suite import NAMES, run_check
from fake_vllm import MODEL, FakeVllm, serving
from station_data import config

ROOT = Path(__file__).resolve().parents[2]
PROMISE: dict[str, Any] = config(served_name=MODEL, parallel=4, max_num_seqs=4)["promise"]
SIMPLE = {"reasoning_effort": [], "tool_use": False}  # as a release says it of a small model


@dataclass(frozen=True)
class Proof:
    """How a check is seen failing: what is wrong with the server or with the promise, and what is said."""

    name: str
    wrong: str
    said: str
    promise: dict[str, Any] = field(default_factory=dict)


PROOFS = [
    Proof("health", "sick", "answered 503 instead of 200"),
    Proof("health", "no_counters", "/metrics lacks vllm:num_requests_running"),
    Proof("metrics", "frozen", "vllm:prompt_tokens_total rose by 0"),
    Proof("metrics", "no_counters", "/metrics lacks vllm:prompt_tokens_total"),
    Proof("chat", "", "gave an empty answer", {"thought_tokens": 0}),
    Proof("chat", "", "was answered with 'Something else", {"likeliest": {}}),
    Proof("chat", "", "answered 400", {"reasoning_effort": ["none"]}),
    Proof("chat_stream", "no_usage", "gives no usage"),
    Proof("chat_stream", "", "gives no usage", {"usage_in_streams": {}}),
    *(Proof(f"reasoning_{one}", "old_field", f"{one} gave no reasoning") for one in ("low", "high", "max")),
    Proof("reasoning_low", "never_thinks", "low gave no reasoning"),
    Proof("reasoning_stream", "old_field", "the stream has no reasoning"),
    Proof("form_after_reasoning", "never_thinks", "does not reason"),
    Proof("form_after_reasoning", "loose", "not JSON"),
    *(Proof(f"form_guided_{kind}", "loose", "gave") for kind in ("json", "regex", "choice", "grammar")),
    *(
        Proof(f"form_guided_{kind}", "", "gave", {"guided_field": "guided_{kind}"})
        for kind in ("json", "regex", "choice", "grammar")
    ),
    Proof("tool_call", "untyped", "other types"),
    Proof("tool_call_stream", "calls_nothing", "no tool call"),
    Proof("tool_choice_auto", "untyped", "other types"),
    Proof("tool_choice_auto", "reason", "the finish_reason is stop"),
    Proof("tool_choice_required", "calls_nothing", "gave no call"),
    Proof("tool_choice_required", "no_arguments", "other types"),
    Proof("tool_choice_required", "reason", "the finish_reason is stop"),
    Proof("tool_choice_named", "no_arguments", "other types"),
    Proof("responses", "", "answered 'What is", {"thought_tokens": 0}),
    Proof("responses", "", "GET /v1/responses/resp_1 answered 404", {"responses_kept": True}),
    Proof("responses_stream", "", "said ''", {"thought_tokens": 0}),
    Proof("messages", "", "answered 'What is", {"likeliest": {}}),
    Proof("round_trip_tokenize", "", "/detokenize gave", {"tokenize_fields": {}}),
    Proof("round_trip_tokenize_v1", "", "answered 404", {"tokenize_v1": True}),
    Proof("context_length_exceeded", "clamps", "answered 200 instead of 400"),
    Proof("context_length_exceeded", "", "has code 400 instead of 404", {"window_error": {"code": 404}}),
    Proof("context_length_exceeded", "", "answered 200 instead of 400", {"budget_is_cut": False}),
    Proof("same_answer_without_a_seed", "", "gave two answers", {"same_answer": True, "likeliest": {}}),
    Proof("vision_off", "ignores_pictures", "answered 200 instead of 400"),
    Proof("parallel_requests", "one_lane", "never more than 1 ran"),
    Proof("one_more_waits", "one_lane", "never more than 1 ran at once"),
    Proof("one_more_waits", "nobody_waits", "nothing had to wait: 5 ran"),
    Proof("prompt_reuse", "forgets", "0 of its"),
    Proof("key_required", "open", "GET /v1/models with no key answered 200"),
    Proof("key_required", "back_door", "POST /invocations with no key answered 200"),
]  # fmt: skip
MEDIA = [name for name in NAMES if name.startswith(("image_", "video_", "limit_"))]
# Against this server these fail only with a wrong promise; a right one passes or skips them.
BY_PROMISE = {"same_answer_without_a_seed", "round_trip_tokenize_v1"}


@pytest.fixture
def server() -> Iterator[FakeVllm]:
    with serving() as fake:
        yield fake


def outcome(server: FakeVllm, name: str, /, key: str = "k3y", **promise: Any) -> tuple[str, str]:
    """How a check ends on this server, and why."""
    found = run_check(name, Api(server.base, MODEL, key, seconds=30), {**PROMISE, **promise})
    return found["result"], found["text"]


@pytest.mark.parametrize("proof", PROOFS, ids=lambda one: "-".join([one.name, one.wrong, *one.promise]))
def test_a_check_passes_and_fails_when_its_feature_is_broken(server: FakeVllm, proof: Proof) -> None:
    server.key = "k3y"
    assert outcome(server, proof.name)[0] == ("skipped" if proof.name in BY_PROMISE else "passed")
    server.wrong = frozenset({proof.wrong})
    result, text = outcome(server, proof.name, **proof.promise)
    assert (result, proof.said in text) == ("failed", True), text


def test_a_right_server_fails_no_check(server: FakeVllm) -> None:
    server.key = "k3y"
    found = {name: outcome(server, name) for name in NAMES}
    assert [name for name, (result, _) in found.items() if result == "failed"] == [], found
    assert {name for name, (result, _) in found.items() if result == "skipped"} == {
        "full_server", "media_url_refused", "reasoning_none", "round_trip_tokenize_v1",
        "same_answer_without_a_seed", *MEDIA
    }  # fmt: skip


def test_by_url_the_release_says_that_it_is_vllm(server: FakeVllm) -> None:
    server.key = "k3y"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/acceptance"]
    argv += [f"--api-url={server.base}", "--release=glm-5.3-nvfp4", f"--promise=served_name={MODEL}"]
    argv += ["-k", "test_api and (models or key or guided_regex or image_png)"]
    env = {**os.environ, "TWINSERVE_API_KEY": "k3y"}
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, "3 passed, 1 skipped" in done.stdout) == (0, True), done.stdout


def test_what_a_model_cannot_is_data_and_skipped(server: FakeVllm) -> None:
    server.thinks = False
    found = {name: outcome(server, name, key="", **SIMPLE) for name in NAMES}
    assert [name for name, (result, _) in found.items() if result == "failed"] == [], found
    assert found["reasoning_low"] == ("skipped", "this release has no reasoning_effort low")
    assert found["reasoning_stream"] == ("skipped", "this model does not reason")
    assert found["form_after_reasoning"] == ("skipped", "this release has no reasoning_effort low")
    assert found["tool_call"] == ("skipped", "this model calls no tools by itself (tool_use: false)")
    assert found["tool_choice_required"] == ("passed", "")
    assert found["key_required"] == ("skipped", "no key was given: whoever reaches this API may use it")
    assert outcome(server, "prompt_reuse", prompts_kept=False)[0] == "skipped"
    assert outcome(server, "tool_choice_named", tool_choice=["auto"])[0] == "skipped"


def test_a_json_object_may_be_cut_off_but_must_have_begun_as_one(server: FakeVllm) -> None:
    server.cut = '{"name": "Alice", "also": {"na'
    assert outcome(server, "form_json_object") == ("passed", "")
    server.cut = 'Her name is "Alice", and'
    assert "begins otherwise" in outcome(server, "form_json_object")[1]


def test_the_window_may_be_smaller_than_the_long_prompt(server: FakeVllm) -> None:
    server.window = 2048
    assert outcome(server, "prompt_reuse") == ("passed", "")
    assert outcome(server, "context_length_exceeded") == ("passed", "")
