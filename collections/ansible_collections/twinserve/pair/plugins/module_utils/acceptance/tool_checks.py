"""Tool calls, whole and streamed."""

from __future__ import annotations

from typing import Any

from .client import CHAT, Api
from .found import Wrong
from .promise import Promise
from .reading import message, need, parsed, said
from .registry import check

QUESTION = "What is the weather in Paris for the next 3 days? Use the tool."
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather forecast of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        },
    },
}


def _judge(name: Any, arguments: str) -> None:
    need(name == "get_weather", f"the tool {name!r} was called instead of get_weather")
    given = parsed(arguments, "the tool call")
    right = isinstance(given, dict) and type(given.get("days")) is int and isinstance(given.get("city"), str)
    need(right, f"the arguments have other types than declared: {arguments}")
    need((given["city"], given["days"]) == ("Paris", 3), f"the tool was called with {arguments}")


@check
def tool_call(api: Api, promise: Promise) -> None:
    """A tool is called with typed arguments, and its result is used."""
    answer = api.chat(QUESTION, tools=[WEATHER], max_tokens=1024)
    asked = message(answer)
    calls = asked.get("tool_calls") or []
    need(len(calls) == 1, f"{len(calls)} tool calls instead of one: {answer.text[:200]}")
    _judge(calls[0]["function"]["name"], calls[0]["function"]["arguments"])
    need(answer.json()["choices"][0]["finish_reason"] == "tool_calls", "finish_reason is not tool_calls")
    result = {"role": "tool", "tool_call_id": calls[0]["id"], "content": "sunny, 21 degrees"}
    body = api.chat_body(QUESTION, tools=[WEATHER], max_tokens=1024)
    text = said(api.ask(CHAT, {**body, "messages": [*body["messages"], asked, result]}))
    need("21" in text or "sunny" in text.lower(), f"the tool's result was answered with {text[:200]!r}")


@check
def tool_call_stream(api: Api, promise: Promise) -> None:
    """The same as a stream, whose pieces make one call."""
    events = api.events(CHAT, api.chat_body(QUESTION, tools=[WEATHER], max_tokens=1024))
    choices = [event["choices"][0] for event in events if event.get("choices")]
    pieces = [piece for one in choices for piece in one.get("delta", {}).get("tool_calls") or []]
    if not pieces:
        raise Wrong("the stream has no tool call")
    need({piece.get("index") for piece in pieces} == {0}, "the stream has more than one tool call")
    functions = [piece.get("function", {}) for piece in pieces]
    name = next((one["name"] for one in functions if one.get("name")), None)
    _judge(name, "".join(one.get("arguments") or "" for one in functions))
    need(any(one.get("finish_reason") == "tool_calls" for one in choices), "finish_reason is not tool_calls")
