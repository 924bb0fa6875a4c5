"""Chat, streaming, reasoning, completions, responses, and what a wrong request is told."""

from __future__ import annotations

from typing import Any

from .client import CHAT, Api
from .found import NotPromised, Unanswered
from .observed import window
from .promise import Promise
from .reading import message, need, refusal, said
from .registry import check, checks

CAPITAL = "What is the capital of France? Answer in one word."
SUM = "What is 17 + 25? Answer with the number only."
NOT_CHUNKED = "this image does not read chunked bodies (needs v1.9 or later): a buffering proxy is required"


@check
def chat(api: Api, promise: Promise) -> None:
    """POST /v1/chat/completions answers a plain question, and says what it cost."""
    answer = api.chat(CAPITAL, reply=32)
    need("Paris" in said(answer), f"{CAPITAL!r} was answered with {said(answer)[:200]!r}")
    usage = answer.json().get("usage", {})
    need(usage.get("prompt_tokens", 0) > 0, f"{answer.what} gave no usage: {usage}")


@check
def chat_stream(api: Api, promise: Promise) -> None:
    """The same as a stream: pieces, a reason for the end, usage, and [DONE]."""
    body = api.chat_body(f"{CAPITAL} Then say why it is famous.", reply=64, **promise.usage_in_streams)
    events = api.events(CHAT, body)
    choices = [one["choices"][0] for one in events if one.get("choices")]
    pieces = [one.get("delta", {}).get("content") or "" for one in choices]
    need("Paris" in "".join(pieces), f"the stream said {''.join(pieces)[:200]!r}")
    need(sum(bool(piece) for piece in pieces) > 1, "the stream came as one piece")
    need(any(one.get("finish_reason") for one in choices), "the stream gives no finish_reason")
    need(any(one.get("usage") for one in events), "the stream gives no usage")


def reasoning(level: str, api: Api, promise: Promise) -> None:
    """`reasoning_effort` of this level is taken, and the reasoning is there unless it is none."""
    if level not in promise.reasoning_effort:
        raise NotPromised(f"this release has no reasoning_effort {level}")
    answer = api.chat(SUM, effort=level, max_tokens=4096)
    need("42" in said(answer), f"{SUM!r} was answered with {said(answer)[:200]!r}")
    thought = message(answer).get(promise.reasoning_field)
    need(
        bool(thought) is (level != "none"),
        f"reasoning_effort {level} gave {'no' if not thought else 'a'} {promise.reasoning_field}",
    )


checks(reasoning, "reasoning", "none", "low", "high", "max")


@check
def reasoning_stream(api: Api, promise: Promise) -> None:
    """A stream brings the reasoning before the answer."""
    level, name = (
        next((one for one in promise.reasoning_effort if one != "none"), None),
        promise.reasoning_field,
    )
    if level is None:
        raise NotPromised("this model does not reason")
    events = api.events(CHAT, api.chat_body(SUM, effort=level, max_tokens=4096))
    deltas = [one["choices"][0].get("delta", {}) for one in events if one.get("choices")]
    kinds = [key for delta in deltas for key in (name, "content") if delta.get(key)]
    need(name in kinds, f"the stream has no {name}")
    need("content" in kinds, "the stream has no content")
    first = kinds.index("content")
    need(name not in kinds[first:], "the stream reasons after it began to answer")


@check
def completions(api: Api, promise: Promise) -> None:
    """POST /v1/completions continues a prompt."""
    body = {"model": api.model, "prompt": "The capital of France is", "max_tokens": 16, "temperature": 0}
    answer = api.ask("/v1/completions", body)
    text = (answer.good().get("choices") or [{}])[0].get("text") or ""
    need("Paris" in text, f"/v1/completions continued {body['prompt']!r} with {text[:200]!r}")


def _responses_body(api: Api) -> dict[str, Any]:
    ways = api.manner
    least = {"reasoning": {"effort": ways.least}} if ways.least else {}
    budget = {"max_output_tokens": ways.budget(32)}
    return {"model": api.model, "input": CAPITAL, **ways.likeliest, **least, **budget}


@check
def responses(api: Api, promise: Promise) -> None:
    """POST /v1/responses answers; where answers are kept, it can be fetched again, and deleted."""
    answer = api.ask("/v1/responses", _responses_body(api)).good()
    items = [item for item in answer.get("output", []) if item.get("type") == "message"]
    text = "".join(part.get("text", "") for item in items for part in item.get("content", []))
    need("Paris" in text, f"/v1/responses answered {CAPITAL!r} with {text[:200]!r}")
    if not promise.responses_kept:
        return
    path = f"/v1/responses/{answer['id']}"
    need(api.ask(path).good().get("id") == answer["id"], f"GET {path} gave another answer")
    api.ask(path, method="DELETE").need(200)
    api.ask(path).need(404)


@check
def responses_stream(api: Api, promise: Promise) -> None:
    """The same as a stream of named events."""
    events = api.events("/v1/responses", _responses_body(api))
    kinds = [str(event.get("type")) for event in events]
    deltas = [e.get("delta", "") for e in events if e.get("type") == "response.output_text.delta"]
    need("Paris" in "".join(deltas), f"the stream of /v1/responses said {''.join(deltas)[:200]!r}")
    need(kinds[-1:] == ["response.completed"], f"the stream of /v1/responses ended with {kinds[-1:]}")


@check
def messages(api: Api, promise: Promise) -> None:
    """POST /v1/messages answers from the release on that has it, and is not there before."""
    asked = [{"role": "user", "content": CAPITAL}]
    budget = 4096 if promise.reasoning_effort else 256  # nothing says here how much to reason
    body = {"model": api.model, "max_tokens": budget, "messages": asked, **promise.likeliest}
    answer = api.ask("/v1/messages", body)
    if not promise.messages:
        answer.need(404)
        return
    parts = answer.good().get("content") or []
    text = "".join(part.get("text", "") for part in parts if part.get("type") == "text")
    need("Paris" in text, f"/v1/messages answered {CAPITAL!r} with {text[:200]!r}")


@check
def context_length_exceeded(api: Api, promise: Promise) -> None:
    """A request past the window is refused with its code: its budget, or its prompt where budgets are cut."""
    tokens = window(api, promise)
    if promise.budget_is_cut:
        answer = api.chat("word " * tokens, max_tokens=1)
    else:
        answer = api.chat("Reply with OK.", max_tokens=tokens)
    error = refusal(answer)
    for name, value in promise.window_error.items():
        need(error.get(name) == value, f"the refusal has {name} {error.get(name)!r} instead of {value!r}")
    need(str(tokens) in error["message"], f"the refusal does not name the window: {error['message']}")


@check
def chunked_body(api: Api, promise: Promise) -> None:
    """A request in chunks is read, from the release on that can."""
    body = api.chat_body(CAPITAL, reply=32)
    try:
        answer = api.chunked(CHAT, body)
    except Unanswered as error:
        if promise.chunked_bodies:
            raise
        raise NotPromised(NOT_CHUNKED) from error  # the chunks were taken for the next request
    if answer.status == 400 and not promise.chunked_bodies:
        raise NotPromised(NOT_CHUNKED)
    said(answer)
