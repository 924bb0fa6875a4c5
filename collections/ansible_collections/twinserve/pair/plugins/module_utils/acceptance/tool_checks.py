"""Tool calls, whole and streamed: by the model's own choice, and by the request's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .client import CHAT, Api
from .found import NotPromised, Wrong
from .promise import Promise
from .reading import message, need, parsed, said
from .registry import check, checks

QUESTION = "What is the weather in Paris for the next 3 days? Use the tool."
NAME = "get_weather"
WEATHER = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": "The weather forecast of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        },
    },
}
# What an engine enforces, whatever the model would say. Few values, so that it ends soon.
STRICT = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": "The weather forecast of a city.",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "enum": ["Paris", "Rome"]},
                "days": {"type": "integer", "enum": [1, 2, 3]},
            },
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}
CHOICES: dict[str, Any] = {
    "auto": "auto",
    "required": "required",
    "named": {"type": "function", "function": {"name": NAME}},
}

# Text may be cut off, a call must come to its end.
REPLY = {"auto": 96, "required": 160, "named": 160}


@dataclass(frozen=True)
class Called:
    """What an answer calls, name and arguments of each, beside its text and the reason of its end."""

    calls: tuple[tuple[Any, str], ...]
    reason: Any
    text: str


def _whole(choice: dict[str, Any]) -> Called:
    found = choice["message"]
    functions = [call["function"] for call in found.get("tool_calls") or []]
    calls = tuple((one["name"], one["arguments"]) for one in functions)
    return Called(calls, choice["finish_reason"], found.get("content") or "")


def _streamed(events: list[dict[str, Any]]) -> Called:
    """The same of a stream, whose pieces belong to the call that their index says."""
    choices = [event["choices"][0] for event in events if event.get("choices")]
    deltas = [one.get("delta", {}) for one in choices]
    pieces = [piece for delta in deltas for piece in delta.get("tool_calls") or []]
    calls = []
    for index in sorted({piece["index"] for piece in pieces}):
        functions = [piece.get("function", {}) for piece in pieces if piece["index"] == index]
        name = next((one["name"] for one in functions if one.get("name")), None)
        calls.append((name, "".join(one.get("arguments") or "" for one in functions)))
    reason = next((one["finish_reason"] for one in choices if one.get("finish_reason")), None)
    return Called(tuple(calls), reason, "".join(delta.get("content") or "" for delta in deltas))


def _typed(name: Any, arguments: str) -> dict[str, Any]:
    """The arguments, which must be those that were declared."""
    need(name == NAME, f"the tool {name!r} was called instead of {NAME}")
    given = parsed(arguments, "the tool call")
    right = isinstance(given, dict) and type(given.get("days")) is int and isinstance(given.get("city"), str)
    need(right, f"the arguments have other types than declared: {arguments}")
    return dict(given)


def _judge(name: Any, arguments: str) -> None:
    given = _typed(name, arguments)
    need((given["city"], given["days"]) == ("Paris", 3), f"the tool was called with {arguments}")


def _need_tools(promise: Promise) -> None:
    if not promise.tool_use:
        raise NotPromised("this model calls no tools by itself (tool_use: false)")


@check
def tool_call(api: Api, promise: Promise) -> None:
    """A tool is called with typed arguments, and its result is used."""
    _need_tools(promise)
    answer = api.chat(QUESTION, tools=[WEATHER], reply=1024)
    asked = message(answer)
    calls = asked.get("tool_calls") or []
    need(len(calls) == 1, f"{len(calls)} tool calls instead of one: {answer.text[:200]}")
    _judge(calls[0]["function"]["name"], calls[0]["function"]["arguments"])
    need(answer.json()["choices"][0]["finish_reason"] == "tool_calls", "finish_reason is not tool_calls")
    result = {"role": "tool", "tool_call_id": calls[0]["id"], "content": "sunny, 21 degrees"}
    body = api.chat_body(QUESTION, tools=[WEATHER], reply=1024)
    text = said(api.ask(CHAT, {**body, "messages": [*body["messages"], asked, result]}))
    need("21" in text or "sunny" in text.lower(), f"the tool's result was answered with {text[:200]!r}")


@check
def tool_call_stream(api: Api, promise: Promise) -> None:
    """The same as a stream, whose pieces make one call."""
    _need_tools(promise)
    found = _streamed(api.events(CHAT, api.chat_body(QUESTION, tools=[WEATHER], reply=1024)))
    if not found.calls:
        raise Wrong("the stream has no tool call")
    need(len(found.calls) == 1, "the stream has more than one tool call")
    _judge(*found.calls[0])
    need(found.reason == "tool_calls", "finish_reason is not tool_calls")


def tool_choice(kind: str, api: Api, promise: Promise) -> None:
    """`tool_choice` decides, whole and streamed: only `auto` may be answered without a call."""
    if kind not in promise.tool_choice:
        raise NotPromised(f"this release does not promise tool_choice {kind}")
    body = api.chat_body(QUESTION, tools=[STRICT], tool_choice=CHOICES[kind], reply=REPLY[kind])
    answer = api.ask(CHAT, body)
    for found in (_whole(answer.good()["choices"][0]), _streamed(api.events(CHAT, body))):
        _chosen(kind, found)


checks(tool_choice, "tool_choice", *CHOICES)


def _chosen(kind: str, found: Called) -> None:
    if kind == "auto" and not found.calls:
        need(bool(found.text.strip()), "tool_choice auto gave neither a call nor text")
        need(found.reason in ("stop", "length"), f"without a call the finish_reason is {found.reason}")
        return
    need(bool(found.calls), f"tool_choice {kind} gave no call, but {found.text[:200]!r}")
    for name, arguments in found.calls:
        _typed(name, arguments)
    # A call that the request names is no choice of the model's: OpenAI's reason for its end is stop.
    reasons = ("tool_calls", "stop") if kind == "named" else ("tool_calls",)
    need(found.reason in reasons, f"with tool_choice {kind} the finish_reason is {found.reason}")
