"""The engine's HTTP API on a running pair: routes, error bodies, streams, counters."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_support import Pair, running_pair

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", 560, 280) + bytes(9)
MP4 = b"\0\0\0\x18ftypisom" + bytes(5000)
WINDOW = 1_048_576


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running_pair(tmp_path_factory.mktemp("api")) as made:
        made.up()
        yield made


@pytest.fixture
def switched(pair: Pair) -> Iterator[Pair]:
    """The same pair; its switches are cleared afterwards."""
    yield pair
    pair.machines[0].switch()


def _said(answer: dict[str, Any]) -> str:
    return str(answer["choices"][0]["message"]["content"])


def _user(content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


def _data(kind: str, blob: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(blob).decode()}"


def test_models(pair: Pair) -> None:
    wanted = {"object": "list", "data": [{"id": "sim", "object": "model", "owned_by": "tensorfold"}]}
    assert pair.ask("/v1/models") == (200, wanted)
    assert pair.ask("/models") == (200, wanted)


def test_health_has_the_contracts_fields(pair: Pair) -> None:
    pair.chat("Reply with OK.")
    status, body = pair.ask("/v1/health")
    assert status == 200
    assert list(body) == [
        "ok", "backend", "busy", "requests_running", "requests_total", "prompt_tokens_total",
        "completion_tokens_total", "prefill_seconds_total", "decode_seconds_total", "cached_tokens_total",
        "rounds_total", "drafted_total", "accepted_total", "streams", "pool_tokens", "pool_free_tokens",
        "kept_prompts", "multi_prefill", "context_length",
    ]  # fmt: skip
    assert (body["ok"], body["backend"], body["context_length"]) == (True, "tensorfold", WINDOW)
    assert body["streams"] == {"decoding": 0, "prefilling": 0, "max": 4, "filling": 0, "paused": 0}


def test_a_whole_chat_answer(pair: Pair) -> None:
    answer = pair.chat("Reply with OK.")
    assert re.fullmatch(r"chatcmpl-[0-9a-f]+", answer["id"])
    assert (answer["object"], answer["model"]) == ("chat.completion", "sim")
    assert answer["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": "OK"}, "finish_reason": "stop"}
    ]
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert set(answer["tensorfold"]) == {
        "prefill_s", "decode_s", "cached", "rounds", "drafted", "accepted", "token_sha"
    }  # fmt: skip


def test_the_models_name_in_a_request_is_not_checked(pair: Pair) -> None:
    assert _said(pair.chat("Reply with OK.", model="another")) == "OK"


def test_thinking_is_on_and_its_amount_is_the_requests(pair: Pair) -> None:
    lengths = []
    for fields in (
        {"reasoning_effort": "low"},
        {},
        {"reasoning_effort": "high"},
        {"reasoning_effort": "max"},
    ):
        status, answer = pair.ask("/v1/chat/completions", {"messages": _user("What is 2+3?"), **fields})
        message = answer["choices"][0]["message"]
        assert (status, message["content"]) == (200, "5")
        lengths.append(answer["usage"]["completion_tokens_details"]["reasoning_tokens"])
    assert lengths == sorted(set(lengths)) and lengths[0] > 0


@pytest.mark.parametrize(
    "fields", [{"reasoning_effort": "none"}, {"chat_template_kwargs": {"enable_thinking": False}}]
)
def test_thinking_may_be_off(pair: Pair, fields: dict[str, Any]) -> None:
    _, answer = pair.ask("/v1/chat/completions", {"messages": _user("What is 2+3?"), **fields})
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": "5"}


def test_equal_requests_get_equal_answers(pair: Pair) -> None:
    found = [pair.chat("Tell me about rails.", temperature=1.0, top_p=0.9) for _ in range(2)]
    assert _said(found[0]) == _said(found[1])
    assert found[0]["tensorfold"]["token_sha"] == found[1]["tensorfold"]["token_sha"]


def test_a_streamed_chat(pair: Pair) -> None:
    events, raw = pair.events("/v1/chat/completions", {"messages": _user("What is 2+3?")})
    deltas = [event["choices"][0]["delta"] for event in events]
    assert deltas[0] == {"role": "assistant"}
    assert "".join(delta.get("content", "") for delta in deltas) == "5"
    assert "".join(delta.get("reasoning_content", "") for delta in deltas).startswith(
        "The user wrote 3 words."
    )
    assert events[-1]["choices"][0]["finish_reason"] == "stop"
    assert events[-1]["usage"]["completion_tokens"] > 0 and "tensorfold" in events[-1]
    assert all("usage" not in event for event in events[:-1])
    assert len({event["id"] for event in events}) == 1
    assert raw.endswith("data: [DONE]\n\n")


def test_a_stream_closes_its_connection_and_a_whole_answer_does_not(pair: Pair) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", pair.api, timeout=10)
    body = {"messages": _user("Reply with OK."), "reasoning_effort": "none"}
    for _ in range(2):
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        answer = connection.getresponse()
        assert json.load(answer)["choices"] and not answer.will_close
    connection.request("POST", "/v1/chat/completions", json.dumps({**body, "stream": True}))
    answer = connection.getresponse()
    assert answer.getheader("Connection") == "close" and answer.read().endswith(b"[DONE]\n\n")


def test_max_tokens_cuts_and_says_so(pair: Pair) -> None:
    answer = pair.chat("Tell me a story about a fox.", max_tokens=3)
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 3


def test_a_stop_text_ends_the_reply(pair: Pair) -> None:
    answer = pair.chat("Please quote: alpha beta gamma", stop=["beta"])
    assert _said(answer).endswith("alpha ") and answer["choices"][0]["finish_reason"] == "stop"


def test_token_ids_are_given_when_asked_for(pair: Pair) -> None:
    answer = pair.chat("Reply with OK.", return_token_ids=True)
    ids = answer["tensorfold"]["token_ids"]
    assert pair.ask("/detokenize", {"tokens": ids}) == (200, {"prompt": "OK"})


def test_a_second_long_prompt_comes_from_the_cache(pair: Pair) -> None:
    prompt = "What is 2+3? " + "Rails carry tokens between two machines. " * 2000
    first, second = pair.chat(prompt), pair.chat(prompt)
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached > 0.99 * second["usage"]["prompt_tokens"]
    assert second["tensorfold"]["prefill_s"] < first["tensorfold"]["prefill_s"] / 5


def test_completions(pair: Pair) -> None:
    status, answer = pair.ask(
        "/v1/completions", {"prompt": ["What is 2+3?", "Reply with OK."], "max_tokens": 9}
    )
    assert status == 200 and answer["object"] == "text_completion"
    assert [choice["text"] for choice in answer["choices"]] == ["5", "OK"]
    _, ids = pair.ask("/tokenize", {"prompt": "Reply with OK."})
    _, answer = pair.ask("/v1/completions", {"prompt": ids["tokens"]})
    assert answer["choices"][0]["text"] == "OK" and answer["usage"]["prompt_tokens"] == ids["count"]
    events, raw = pair.events("/v1/completions", {"prompt": "Reply with OK."})
    assert "".join(event["choices"][0]["text"] for event in events) == "OK" and raw.endswith("[DONE]\n\n")


@pytest.mark.parametrize("prefix", ["", "/v1"])
@pytest.mark.parametrize("text", ["Hello, wörld! 漢字 😀", "def f(x):\n\treturn x ** 2"])
def test_tokenize_and_back(pair: Pair, prefix: str, text: str) -> None:
    status, found = pair.ask(f"{prefix}/tokenize", {"prompt": text})
    assert (status, found["count"], found["max_model_len"]) == (200, len(found["tokens"]), WINDOW)
    assert pair.ask(f"{prefix}/detokenize", {"tokens": found["tokens"]}) == (200, {"prompt": text})


def test_messages_are_tokenized_as_the_chat_counts_them(pair: Pair) -> None:
    messages = _user("How long am I?")
    _, found = pair.ask("/tokenize", {"messages": messages, "reasoning_effort": "none"})
    assert found["count"] == pair.chat("How long am I?")["usage"]["prompt_tokens"]


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        },
    },
}


def test_a_tool_is_called_with_typed_arguments(pair: Pair) -> None:
    answer = pair.chat("What is the weather in Paris for 3 days?", tools=[WEATHER])
    choice = answer["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", None)
    assert (call["type"], call["function"]["name"]) == ("function", "get_weather")
    assert json.loads(call["function"]["arguments"]) == {"city": "Paris", "days": 3}


def test_a_streamed_tool_call_and_the_answer_to_its_result(pair: Pair) -> None:
    question = _user("What is the weather in Paris for 3 days?")
    events, _ = pair.events(
        "/v1/chat/completions", {"messages": question, "tools": [WEATHER], "reasoning_effort": "none"}
    )
    (call,) = [c for event in events for c in event["choices"][0]["delta"].get("tool_calls", [])]
    assert call["index"] == 0 and json.loads(call["function"]["arguments"])["days"] == 3
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}
    _, answer = pair.ask("/v1/chat/completions", {"messages": [*question, said, result], "tools": [WEATHER]})
    assert _said(answer) == "The tool answered: sunny"


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
ALICE = {"name": "Alice", "age": 31}


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA}}}, ALICE),
        ({"guided_json": SCHEMA}, ALICE),
        ({"guided_json": json.dumps(SCHEMA)}, ALICE),
        ({"guided_regex": "[0-9]{3}-[0-9]{4}"}, "000-0000"),
        ({"guided_choice": ["Bob", "Alice"]}, "Alice"),
        ({"guided_grammar": 'root ::= "yes" | "no"'}, "no"),
        ({"response_format": {"type": "text"}}, None),
    ],
)
@pytest.mark.parametrize("effort", ["none", "low"])
def test_fixed_forms(pair: Pair, fields: dict[str, Any], wanted: object, effort: str) -> None:
    answer = pair.chat("Her name is Alice and she is 31.", **{**fields, "reasoning_effort": effort})
    said = _said(answer)
    if wanted is None:
        assert said.startswith("This is sim.")
    else:
        assert (json.loads(said) if isinstance(wanted, dict) else said) == wanted


def test_a_json_object(pair: Pair) -> None:
    said = _said(pair.chat("What is 2+3?", response_format={"type": "json_object"}))
    assert json.loads(said) == {"answer": "5"}


@pytest.mark.parametrize(
    ("kind", "part", "tokens"),
    [
        ("image", {"type": "image_url", "image_url": {"url": _data("image/png", PNG)}}, 200),
        ("video", {"type": "video_url", "video_url": {"url": _data("video/mp4", MP4)}}, 260),
    ],
)
def test_media_are_seen_and_counted(pair: Pair, kind: str, part: dict[str, Any], tokens: int) -> None:
    text = {"type": "text", "text": "What is this?"}
    with_media = pair.chat([text, part])  # type: ignore[arg-type]
    without = pair.chat("What is this?")
    assert f"I also see 1 {kind}." in _said(with_media)
    assert with_media["usage"]["prompt_tokens"] - without["usage"]["prompt_tokens"] == tokens


def test_the_responses_api(pair: Pair) -> None:
    body = {"input": "What is 2+3?", "instructions": "Be short.", "reasoning": {"effort": "low"}}
    status, answer = pair.ask("/v1/responses", body)
    assert (status, answer["object"], answer["status"], answer["output_text"]) == (
        200,
        "response",
        "completed",
        "5",
    )
    assert [item["type"] for item in answer["output"]] == ["reasoning", "message"]
    assert answer["output"][1]["content"][0]["text"] == "5"
    assert answer["usage"]["input_tokens"] > 0
    path = f"/v1/responses/{answer['id']}"
    assert pair.ask(path) == (200, answer)
    _, then = pair.ask("/v1/responses", {"input": "Reply with OK.", "previous_response_id": answer["id"]})
    assert then["usage"]["input_tokens"] > answer["usage"]["input_tokens"]
    assert pair.ask(path, method="DELETE") == (
        200,
        {"id": answer["id"], "object": "response", "deleted": True},
    )
    assert pair.ask(path)[0] == 404


def test_streamed_responses(pair: Pair) -> None:
    events, raw = pair.events("/v1/responses", {"input": _user("Reply with OK."), "reasoning_effort": "none"})
    kinds = [event["type"] for event in events]
    assert kinds == [
        "response.created", "response.output_text.delta", "response.output_item.done", "response.completed"
    ]  # fmt: skip
    assert events[-1]["response"]["output_text"] == "OK"
    assert raw.startswith("event: response.created\n")


def test_responses_call_tools_and_keep_forms(pair: Pair) -> None:
    tool = {"type": "function", **WEATHER["function"]}  # type: ignore[dict-item]
    _, answer = pair.ask("/v1/responses", {"input": "Weather in Paris for 3 days?", "tools": [tool]})
    (call,) = [item for item in answer["output"] if item["type"] == "function_call"]
    assert json.loads(call["arguments"])["days"] == 3
    form = {"type": "json_schema", "name": "p", "schema": SCHEMA}
    _, answer = pair.ask(
        "/v1/responses", {"input": "She is Alice, 31.", "text": {"format": form}, "store": False}
    )
    assert json.loads(answer["output_text"]) == ALICE
    assert pair.ask(f"/v1/responses/{answer['id']}")[0] == 404


CHAT = "/v1/chat/completions"
IMAGE_URL = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
NOT_BASE64 = {"type": "image_url", "image_url": {"url": "data:,x"}}
NO_IMAGE = {"type": "image_url", "image_url": {"url": _data("image/gif", b"GIF")}}
NO_VIDEO = {"type": "video_url", "video_url": {"url": _data("video/mp4", PNG)}}


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        (CHAT, {}, "messages must be a list"),
        (CHAT, {"messages": []}, "messages must be a list"),
        (CHAT, {"messages": [{"content": "x"}]}, "a message must have a role"),
        (CHAT, {"messages": [{"role": "user", "content": 7}]}, "content must be"),
        (CHAT, {"messages": _user("x"), "max_tokens": 0}, "max_tokens must be a positive"),
        (CHAT, {"messages": _user("x"), "temperature": "hot"}, "temperature must be a number"),
        (CHAT, {"messages": _user("x"), "top_p": 2}, "top_p must be a number from 0 to 1"),
        (CHAT, {"messages": _user("x"), "stream": "yes"}, "stream must be true or false"),
        (CHAT, {"messages": _user("x"), "reasoning_effort": "huge"}, "reasoning_effort must be one of"),
        (CHAT, {"messages": _user("x"), "stop": [1]}, "stop must be"),
        (CHAT, {"messages": _user("x"), "tools": [{"type": "other"}]}, "a tool must be"),
        (CHAT, {"messages": _user("x"), "response_format": {"type": "xml"}}, "response_format.type"),
        (CHAT, {"messages": _user("x"), "guided_regex": "("}, "regular expression"),
        (CHAT, {"messages": _user("x"), "guided_choice": []}, "guided_choice must be"),
        (CHAT, {"messages": _user("x"), "guided_json": "{"}, "guided_json is not JSON"),
        (CHAT, {"messages": _user("x"), "guided_regex": "a", "guided_choice": ["a"]}, "only one of"),
        (CHAT, {"messages": _user([IMAGE_URL])}, "media URLs are off"),
        (CHAT, {"messages": _user([NOT_BASE64])}, "must be base64"),
        (CHAT, {"messages": _user([NO_IMAGE])}, "an image is not"),
        (CHAT, {"messages": _user([NO_VIDEO])}, "a video is not"),
        ("/v1/completions", {}, "prompt must be"),
        ("/v1/completions", {"prompt": [-1]}, "outside the vocabulary"),
        ("/v1/responses", {}, "input must be"),
        ("/tokenize", {}, "prompt must be"),
        ("/detokenize", {"tokens": "x"}, "tokens must be"),
        ("/detokenize", {"tokens": [999999]}, "outside the vocabulary"),
    ],
)  # fmt: skip
def test_bad_requests(pair: Pair, path: str, body: dict[str, Any], text: str) -> None:
    status, answer = pair.ask(path, body)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert text in answer["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (CHAT, {"messages": _user("x"), "max_tokens": WINDOW}, "messages"),
        (CHAT, {"messages": _user("x"), "max_completion_tokens": WINDOW}, "messages"),
        ("/v1/completions", {"prompt": "x", "max_tokens": WINDOW}, "prompt"),
    ],
)
def test_an_explicit_budget_past_the_window_is_refused(
    pair: Pair, path: str, body: dict[str, Any], param: str
) -> None:
    status, answer = pair.ask(path, body)
    error = answer["error"]
    assert status == 400
    assert error["message"].startswith(f"This server's maximum context length is {WINDOW} tokens")
    assert (error["type"], error["param"], error["code"]) == (
        "invalid_request_error", param, "context_length_exceeded"
    )  # fmt: skip


def test_unknown_routes(pair: Pair) -> None:
    for path in ("/v1/messages", "/v1/embeddings", "/nope"):
        assert pair.ask(path, {"x": 1}) == (404, {"error": "not found"})
    assert pair.ask("/nope") == (404, {"error": "not found"})
    assert pair.ask("/nope", method="DELETE") == (404, {"error": "not found"})
    assert pair.ask("/v1/responses/none")[0] == 404


def _raw(pair: Pair, request: bytes) -> bytes:
    """The bytes that come back until the server closes or falls silent."""
    with socket.create_connection(("127.0.0.1", pair.api), timeout=2) as connection:
        connection.sendall(request)
        found = b""
        try:
            while data := connection.recv(65536):
                found += data
        except TimeoutError:
            pass
        return found


@pytest.mark.parametrize(
    ("head", "body", "text", "closes"),
    [
        (b"Content-Length: 3", b"{x}", b"not JSON", False),
        (b"Content-Length: 2", b"[]", b"not a JSON object", False),
        (b"Content-Length: x", b"", b"Content-Length is not a number", True),
        (b"Content-Length: 100663297", b"", b"larger than 96 MiB", True),
    ],
)
def test_bodies_that_cannot_be_read(pair: Pair, head: bytes, body: bytes, text: bytes, closes: bool) -> None:
    found = _raw(pair, b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n" + body)
    assert found.startswith(b"HTTP/1.1 400") and text in found and b"invalid_request_error" in found
    assert (b"Connection: close" in found) is closes


def test_a_chunked_body_reads_as_empty_and_spoils_the_connection(pair: Pair) -> None:
    body = json.dumps({"messages": _user("Reply with OK.")}).encode()
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    found = _raw(pair, head + chunked)
    assert found.startswith(b"HTTP/1.1 400") and b"not JSON" in found
    assert found.count(b"HTTP/1.1 ") + found.count(b"Error response") > 1  # the chunk was taken for a request


def test_metrics_have_the_contracts_names(pair: Pair) -> None:
    pair.chat("Reply with OK.")
    status, text = pair.ask("/metrics")
    assert status == 200 and pair.ask("/v1/metrics")[0] == 200
    names = set(re.findall(r"^([\w:]+)", text, re.MULTILINE))
    assert names >= {
        *(f"tensorfold:{name}" for name in (
            "requests_running", "requests_waiting", "prompt_tokens_total", "generation_tokens_total",
            "mtp_drafted_total", "mtp_accepted_total", "kv_cache_usage_ratio",
            "request_latency_seconds_bucket", "request_latency_seconds_sum", "request_latency_seconds_count",
            "time_to_first_token_seconds_bucket",
        )),
        *(f"tensorfold_health:{name}" for name in (
            "requests_total", "completion_tokens_total", "cached_tokens_total", "rounds_total",
            "prefill_seconds_total", "decode_seconds_total", "context_length", "streams_max", "pool_tokens",
            "pool_free_tokens", "kept_prompts", "streams",
        )),
    }  # fmt: skip
    assert 'tensorfold_health:streams{state="decoding"} 0' in text
    assert re.search(r'request_latency_seconds_bucket\{le="\+Inf"\} [1-9]', text)
    assert f"tensorfold_health:context_length {WINDOW}" in text


def test_counters_of_health_and_metrics_grow_together(pair: Pair) -> None:
    before = pair.ask("/health")[1]
    answer = pair.chat("Reply with OK.")
    after, text = pair.ask("/health")[1], pair.ask("/metrics")[1]
    assert after["requests_total"] == before["requests_total"] + 1
    assert after["prompt_tokens_total"] - before["prompt_tokens_total"] == answer["usage"]["prompt_tokens"]
    assert f"tensorfold_health:requests_total {after['requests_total']}\n" in text


def test_four_run_and_the_fifth_waits_and_is_served(switched: Pair) -> None:
    pair = switched
    pair.machines[0].switch(decode_tokens_per_s=20)
    answers: list[dict[str, Any]] = []
    ask = lambda: answers.append(pair.chat("Tell me of 7 rivers and of 9 hills."))  # noqa: E731
    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 20
    while (health := pair.ask("/health")[1])["streams"]["filling"] != 2:
        assert time.monotonic() < deadline, health
        time.sleep(0.01)
    assert (health["requests_running"], health["busy"]) == (4, True)
    pair.machines[0].switch()
    for thread in threads:
        thread.join()
    assert len({_said(answer) for answer in answers}) == 1 and len(answers) == 6
    assert pair.ask("/health")[1]["requests_running"] == 0


def test_too_many_waiting_requests_are_turned_away(switched: Pair) -> None:
    switched.machines[0].switch(max_waiting=0, decode_tokens_per_s=20)
    ask = lambda: switched.chat("Tell me of 7 rivers and of 9 hills.")  # noqa: E731
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    while switched.ask("/health")[1]["requests_running"] < 4:
        time.sleep(0.01)
    status, answer = switched.ask(CHAT, {"messages": _user("x")})
    assert status == 503 and "capacity" in answer["error"]["message"] and "type" not in answer["error"]
    assert switched.ask("/tokenize", {"prompt": "x"})[0] == 200
    switched.machines[0].switch()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    ("switch", "said"), [({"empty_reply": True}, "None"), ({"collapsed_reply": True}, "!!!!!!!!")]
)
def test_broken_replies(switched: Pair, switch: dict[str, Any], said: str) -> None:
    switched.machines[0].switch(**switch)
    assert _said(switched.chat("Reply with OK.")) == said


def test_a_failing_decoder_is_500_before_and_an_event_after_the_start(switched: Pair) -> None:
    switched.machines[0].switch(fail_completions=True)
    status, answer = switched.ask(CHAT, {"messages": _user("x")})
    assert status == 500 and answer["error"] == {
        "message": "CUDA error: an illegal memory access was encountered"
    }
    events, raw = switched.events(CHAT, {"messages": _user("x")})
    assert "error" in events[-1] and raw.endswith("data: [DONE]\n\n")
    assert "Traceback" in switched.ranks[-1].log()


def test_a_stream_may_be_cut(switched: Pair) -> None:
    switched.machines[0].switch(cut_stream_after=2)
    events, raw = switched.events(CHAT, {"messages": _user("x")})
    assert len(events) == 2 and "[DONE]" not in raw


def test_a_hanging_decoder_still_answers_health(tmp_path: Path) -> None:
    with running_pair(tmp_path) as pair:
        pair.up()
        pair.machines[0].switch(hang_completions=True)
        with pytest.raises(TimeoutError):
            pair.ask(CHAT, {"messages": _user("x")}, seconds=1)
        assert pair.ask("/health")[1]["requests_running"] == 1


def test_one_lane_without_vision_or_thinking(tmp_path: Path) -> None:
    with running_pair(tmp_path) as pair:
        for rank in (1, 0):
            words = pair.words(rank, "--no-thinking", drafter="none", vision=False, parallel="1")
            last = pair.start(rank, words=words)
        last.until("drafts: off; context: 1048576")
        health = pair.ask("/health")[1]
        assert {"streams", "pool_tokens", "kept_prompts", "multi_prefill"}.isdisjoint(health)
        _, answer = pair.ask(CHAT, {"messages": _user("What is 2+3?")})
        assert "reasoning_content" not in answer["choices"][0]["message"]
        _, answer = pair.ask(
            CHAT, {"messages": _user("x"), "chat_template_kwargs": {"enable_thinking": True}}
        )
        assert "reasoning_content" in answer["choices"][0]["message"]
        image = {"type": "image_url", "image_url": {"url": _data("image/png", PNG)}}
        status, answer = pair.ask(CHAT, {"messages": _user([image])})
        assert status == 400 and "without --vision" in answer["error"]["message"]


def test_a_prompt_that_fills_the_window_is_refused_and_the_default_budget_is_cut(tmp_path: Path) -> None:
    with running_pair(tmp_path) as pair:
        pair.up("--context", "2048")
        status, answer = pair.ask(CHAT, {"messages": _user("word " * 5000)})
        assert (status, answer["error"]["code"]) == (400, "context_length_exceeded")
        prompt = "x " * 2000
        _, found = pair.ask("/tokenize", {"prompt": prompt})
        assert 1000 < found["count"] < 2048
        assert pair.chat(prompt)["choices"][0]["finish_reason"] in ("stop", "length")


def test_the_command_line_sets_the_default_effort_and_sampling(tmp_path: Path) -> None:
    with running_pair(tmp_path) as pair:
        zero, _ = pair.up("--reasoning-effort", "xhigh", "--temperature", "0.6", "--min-p", "0.05")
        assert "(sampling: temperature 0.6, top_p 0.95, min_p 0.05; drafts: on;" in zero.log()
        _, usual = pair.ask(CHAT, {"messages": _user("x")})
        _, low = pair.ask(CHAT, {"messages": _user("x"), "reasoning_effort": "high"})
        details = [answer["usage"]["completion_tokens_details"] for answer in (low, usual)]
        assert details[0]["reasoning_tokens"] < details[1]["reasoning_tokens"]
