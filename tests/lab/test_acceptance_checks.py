"""Each acceptance check passes against the simulated engine, and fails when what it is about is broken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.client import Api
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.samples import IMAGES, VIDEOS
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.suite import NAMES, run_check
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.tool_checks import CHOICES
from engine_support import Pair, running_pair

PROMISE: dict[str, Any] = {
    "served_name": "sim",
    "reasoning_effort": ["none", "low", "high", "max"],
    "effort_field": "reasoning_effort",
    "reasoning_field": "reasoning_content",
    "thought_tokens": 0,
    "likeliest": {},
    "same_answer": True,
    "usage_in_streams": {},
    "guided_field": "guided_{kind}",
    "tool_use": True,
    "tool_choice": ["auto", "required", "named"],
    "vision": True,
    "vision_urls": False,
    "parallel": 4,
    "prompts_kept": True,
    "more_chat_routes": [],
    "messages": False,
    "responses_kept": True,
    "tokenize_v1": True,
    "tokenize_fields": {},
    "chunked_bodies": False,
    "body_limit_mib": 96,
    "window_error": {"code": "context_length_exceeded"},
    "budget_is_cut": False,
    "health_pool": True,
    "health_metrics": {},
    "running_metric": None,
    "cached_metric": None,
    "full_status": 429,
    "max_queued": None,
    "image_tokens": 2048,
    "max_images": 50,
    "max_videos": 4,
    "request_image_tokens": 16384,
}
MESSAGES = {"messages": True}
CHUNKED = {"chunked_bodies": True}


@dataclass(frozen=True)
class Proof:
    """How a check is seen failing: the engine's switches, and a piece of what is said.

    `promise` differs from the usual one; `whole` are the switches with which the check passes.
    """

    name: str
    broken: dict[str, Any]
    said: str
    promise: dict[str, Any] = field(default_factory=dict)
    whole: dict[str, Any] = field(default_factory=dict)
    seconds: float = 600.0


SLOW = {"decode_tokens_per_s": 40.0}
FULL = {**SLOW, "max_waiting": 0, "full_status": 429}
LIMITED: dict[str, Any] = {"max_queued": 0}
PROOFS = [
    Proof("models", {"wrong_model": "other"}, "lists ['other'] instead of sim"),
    Proof("health", {"health_without": ["pool_tokens"]}, "/health lacks pool_tokens"),
    Proof("health", {"missing_routes": ["/health"]}, "answered 404"),
    Proof("metrics", {"frozen_metrics": True}, "the same counters"),
    Proof("metrics", {"missing_routes": ["/metrics"]}, "GET /metrics answered 404"),
    Proof("chat", {"empty_reply": True}, "gave an empty answer"),
    Proof("chat", {"collapsed_reply": True}, "answered with '!!!!!!!!'"),
    Proof("chat", {"fail_completions": True}, "answered 500 instead of 200"),
    Proof("chat_stream", {"cut_stream_after": 2}, "ended without [DONE]"),
    Proof("chat_stream", {"one_piece": True}, "came as one piece"),
    Proof("chat_stream", {"no_usage": True}, "gives no usage"),
    Proof("chat_stream", {"fail_completions": True}, "brought an error"),
    Proof("reasoning_none", {"ignore_fields": ["reasoning_effort"]}, "none gave a reasoning_content"),
    Proof("reasoning_low", {"never_reasons": True}, "low gave no reasoning_content"),
    Proof("reasoning_high", {"never_reasons": True}, "high gave no reasoning_content"),
    Proof("reasoning_max", {"never_reasons": True}, "max gave no reasoning_content"),
    Proof("reasoning_stream", {"never_reasons": True}, "no reasoning_content"),
    Proof("reasoning_stream", {"late_reasoning": True}, "after it began to answer"),
    Proof("completions", {"missing_routes": ["/v1/completions"]}, "answered 404"),
    Proof("completions", {"empty_reply": True}, "with ''"),
    Proof("responses", {"missing_routes": ["/v1/responses"]}, "answered 404"),
    Proof("responses", {"forget_responses": True}, "GET /v1/responses/"),
    Proof("responses_stream", {"cut_stream_after": 2}, "the stream of /v1/responses said"),
    Proof("responses_stream", {"empty_reply": True}, "said ''"),
    Proof("messages", {"messages_route": True}, "answered 200 instead of 404"),
    Proof("messages", {}, "answered 404", MESSAGES, {"messages_route": True}),
    Proof("context_length_exceeded", {"clamp_budget": True}, "answered 200 instead of 400"),
    Proof("chunked_body", {}, "answered 400", CHUNKED, {"chunked_bodies": True}),
    Proof("sampling_temperature", {"ignore_fields": ["temperature"]}, "leaves one choice"),
    Proof("sampling_top_p", {"ignore_fields": ["top_p"]}, "leaves one choice"),
    Proof("sampling_top_k", {"ignore_fields": ["top_k"]}, "leaves one choice"),
    Proof("sampling_min_p", {"ignore_fields": ["min_p"]}, "leaves one choice"),
    Proof("sampling_seed", {"ignore_fields": ["seed"]}, "gave one answer"),
    Proof("sampling_seed", {"random_answers": True}, "seed 7 gave two answers"),
    Proof("same_answer_without_a_seed", {"random_answers": True}, "gave two answers"),
    Proof("round_trip_tokenize", {"lossy_detokenize": True}, "/detokenize gave 'Hello, w?rld!"),
    Proof("round_trip_tokenize", {"missing_routes": ["/tokenize"]}, "answered 404"),
    Proof("round_trip_tokenize_v1", {"missing_routes": ["/v1/detokenize"]}, "/v1/detokenize answered 404"),
    Proof("form_json_object", {"ignore_fields": ["response_format"]}, "not JSON"),
    Proof("form_json_schema", {"ignore_fields": ["response_format"]}, "not JSON"),
    Proof("form_guided_json", {"ignore_fields": ["guided_json"]}, "not JSON"),
    Proof("form_guided_regex", {"ignore_fields": ["guided_regex"]}, "guided_regex gave"),
    Proof("form_guided_choice", {"ignore_fields": ["guided_choice"]}, "guided_choice gave"),
    Proof("form_guided_grammar", {"ignore_fields": ["guided_grammar"]}, "guided_grammar gave"),
    Proof("form_after_reasoning", {"loose_after_reasoning": True}, "not JSON"),
    Proof("form_after_reasoning", {"never_reasons": True}, "does not reason"),
    Proof("tool_call", {"ignore_fields": ["tools"]}, "0 tool calls"),
    Proof("tool_call", {"untyped_arguments": True}, "other types"),
    Proof("tool_call_stream", {"ignore_fields": ["tools"]}, "no tool call"),
    Proof("tool_call_stream", {"untyped_arguments": True}, "other types"),
    *(Proof(f"tool_choice_{kind}", {"untyped_arguments": True}, "other types") for kind in CHOICES),
    Proof("tool_choice_required", {"ignore_fields": ["tools"]}, "gave no call"),
    Proof("tool_choice_named", {"ignore_fields": ["tools"]}, "gave no call"),
    *(Proof(f"image_{kind}", {"refuse_media": [kind]}, "answered 400") for kind in IMAGES),
    *(Proof(f"image_{kind}", {"blind": True}, "without a look") for kind in IMAGES),
    *(Proof(f"video_{kind}", {"refuse_media": [kind]}, "answered 400") for kind in VIDEOS),
    *(Proof(f"video_{kind}", {"blind": True}, "without a look") for kind in VIDEOS),
    *(Proof(f"image_{kind}", {"wrong_colour": True}, "red was called 'It is green.'") for kind in IMAGES),
    *(Proof(f"video_{kind}", {"wrong_colour": True}, "red was called 'It is green.'") for kind in VIDEOS),
    Proof("media_url_refused", {"fetch_urls": True}, "went to fetch"),
    Proof("limit_images", {"no_limits": True}, "answered 200 instead of 400"),
    Proof("limit_image_bytes", {"no_limits": True}, "answered 200 instead of 400"),
    Proof("limit_images_bytes", {"no_limits": True}, "answered 200 instead of 400"),
    Proof("limit_image_tokens", {"no_limits": True}, "one picture took"),
    Proof("limit_request_image_tokens", {"no_limits": True}, "pictures took"),
    Proof("limit_videos", {"no_limits": True}, "answered 200 instead of 400"),
    Proof("limit_video_bytes", {"no_limits": True}, "answered 200 instead of 400"),
    Proof("limit_video_length", {"no_limits": True}, "answered 200 instead of 400"),
    Proof("limit_body", {"no_limits": True}, "was not answered: TimeoutError", seconds=3),
    Proof("parallel_requests", {**SLOW, "one_at_a_time": True}, "never more than 1 ran", whole=SLOW),
    Proof("one_more_waits", {**SLOW, "max_waiting": 0}, "answered 503", whole=SLOW),
    Proof("one_more_waits", {**SLOW, "one_at_a_time": True}, "never more than 1 ran at once", whole=SLOW),
    Proof("one_more_waits", {**SLOW, "nobody_waits": True}, "nothing had to wait: 5 ran", whole=SLOW),
    Proof("full_server", {**FULL, "full_status": 503}, "answered 503 instead of 429", LIMITED, FULL),
    Proof("full_server", {**FULL, "late_refusal": True}, "answered 200 instead of 429", LIMITED, FULL),
    Proof("full_server", {**SLOW, "full_status": 429}, "answered 200 instead of 429", LIMITED, FULL),
    Proof("full_server", {**FULL, "one_at_a_time": True}, "do not fill the server", LIMITED, FULL),
    Proof("prompt_reuse", {"forget_prompts": True}, "0 of its"),
]  # fmt: skip


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running_pair(tmp_path_factory.mktemp("acceptance")) as made:
        made.up()
        yield made


@pytest.fixture
def pair(serving: Pair) -> Iterator[Pair]:
    """The same pair; its switches are cleared afterwards."""
    yield serving
    serving.machines[0].switch()


def outcome(pair: Pair, name: str, seconds: float = 600, key: str = "", **promise: Any) -> tuple[str, str]:
    """How a check ends on this pair, and why."""
    api = Api(f"http://127.0.0.1:{pair.api}", "sim", key, seconds=seconds)
    found = run_check(name, api, {**PROMISE, **promise})
    return found["result"], found["text"]


@pytest.mark.parametrize(
    "proof", PROOFS, ids=lambda proof: f"{proof.name}-{'-'.join(proof.broken) or 'as-it-is'}"
)
def test_a_check_passes_and_fails_when_its_feature_is_broken(pair: Pair, proof: Proof) -> None:
    pair.machines[0].switch(**proof.whole)
    assert outcome(pair, proof.name, proof.seconds, **proof.promise) == ("passed", "")
    pair.machines[0].switch(**proof.broken)
    result, text = outcome(pair, proof.name, proof.seconds, **proof.promise)
    assert (result, proof.said in text) == ("failed", True), text


def test_every_check_was_seen_failing() -> None:
    elsewhere = {"vision_off", "key_required"}  # below, on a pair without vision, and on one with a key
    assert {proof.name for proof in PROOFS} | elsewhere == set(NAMES)


def test_a06_without_vision_a_picture_is_refused_and_not_ignored(pair: Pair, tmp_path: Any) -> None:
    with running_pair(tmp_path) as blind:
        for rank in (1, 0):
            last = blind.start(rank, words=blind.words(rank, vision=False))
        last.until("serving ")
        assert outcome(blind, "vision_off", vision=False) == ("passed", "")
        assert outcome(blind, "image_png", vision=False) == (
            "skipped", "images and video are off (vision: false)"
        )  # fmt: skip
        assert outcome(blind, "image_png")[0] == "failed"
    result, text = outcome(pair, "vision_off", vision=False)
    assert (result, "answered 200 instead of 400" in text) == ("failed", True)


MEDIA = [name for name in NAMES if name.startswith(("image_", "video_", "limit_", "media_"))]


@pytest.mark.parametrize("most", [0, 4])
def test_a_right_pair_with_small_limits_to_media_fails_no_check(tmp_path: Path, most: int) -> None:
    with running_pair(tmp_path) as small:
        limits: dict[str, str | None] = {
            "TENSORFOLD_GLM_MAX_IMAGES": str(most),
            "TENSORFOLD_GLM_MAX_VIDEOS": str(most),
        }
        small.up(env=limits)
        found = {name: outcome(small, name, max_images=most, max_videos=most) for name in MEDIA}
        assert [name for name, (result, _) in found.items() if result == "failed"] == [], found
        passed = {name for name, (result, _) in found.items() if result == "passed"}
        assert {"limit_images", "limit_videos"} <= passed
        assert found["limit_images_bytes"] == ("skipped", f"max_images is {most}, and this check sends 7")
        assert ("image_png" in passed, "limit_video_bytes" in passed) == (most > 0, most > 0)


def test_a01_an_image_that_does_not_read_chunked_bodies_is_told_and_one_that_shall_fails(pair: Pair) -> None:
    said = "this image does not read chunked bodies (needs v1.9 or later): a buffering proxy is required"
    assert outcome(pair, "chunked_body") == ("skipped", said)
    assert outcome(pair, "chunked_body", chunked_bodies=True)[0] == "failed"
    pair.machines[0].switch(chunked_bodies=True)
    assert outcome(pair, "chunked_body", chunked_bodies=True) == ("passed", "")


def test_a02_a_limited_queue_refuses_a_stream_before_it_begins_and_an_unlimited_one_is_not_filled(
    pair: Pair,
) -> None:
    pair.machines[0].switch(**FULL)
    assert outcome(pair, "full_server", **LIMITED) == ("passed", "")
    assert outcome(pair, "full_server") == ("skipped", "no limit is set to the requests that wait")
    assert outcome(pair, "full_server", max_queued=64)[0] == "skipped"


def test_a_key_that_is_set_is_asked_for_and_one_that_nobody_asks_for_is_told(pair: Pair) -> None:
    pair.machines[0].switch(api_key="s3cret")
    assert outcome(pair, "key_required", key="s3cret") == ("passed", "")
    assert outcome(pair, "key_required", key="other")[0] == "failed"
    assert outcome(pair, "key_required")[0] == "skipped"
    pair.machines[0].switch()
    result, text = outcome(pair, "key_required", key="s3cret")
    assert (result, "with no key answered 200" in text, "s3cret" in text) == ("failed", True, False)


def test_what_is_not_promised_is_skipped_with_the_reason(pair: Pair) -> None:
    assert outcome(pair, "reasoning_max", reasoning_effort=["none"]) == (
        "skipped", "this release has no reasoning_effort max"
    )  # fmt: skip
    assert outcome(pair, "media_url_refused", vision_urls=True) == ("skipped", "vision_urls is on")
    assert outcome(pair, "vision_off") == ("skipped", "images and video are on")
    assert outcome(pair, "prompt_reuse", prompts_kept=False)[0] == "skipped"


def test_nobody_there_is_a_failure_that_names_the_request(pair: Pair) -> None:
    found = run_check("models", Api("http://127.0.0.1:9", "sim"), PROMISE)
    assert found["result"] == "failed"
    assert found["text"].startswith("GET /v1/models was not answered: ConnectionRefusedError")


def test_a_connection_that_fails_outside_a_request_fails_its_check_alone() -> None:
    found = run_check("media_url_refused", Api("http://127.0.0.1:9", "sim"), PROMISE)
    assert found["result"] == "failed"
    assert found["text"].startswith("the check broke off: ConnectionRefusedError")
