"""The Responses API over chat: POST /v1/responses, GET and DELETE /v1/responses/{id}."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

from ..engine import Engine
from ..reply import Call, Delta, Stats
from .chat import figures, joined
from .compose import Chat, read_chat
from .errors import ApiError
from .wire import new_id, now, send_events, send_json, usage

KEPT = 256


def create(handler: BaseHTTPRequestHandler, engine: Engine, body: dict[str, Any]) -> None:
    """Answer one request and keep the answer unless `store` is false."""
    messages = _messages(body, engine)
    request = read_chat(_as_chat(body, messages), engine, param="input")
    if request.stream:
        events = _events(request, engine, body, messages)
        send_events(handler, events, engine.switches.get("cut_stream_after"), named=True)
        return
    stats = Stats()
    deltas = list(engine.generate(request.job, stats))
    answer = _object(engine, body, deltas, stats, new_id("resp"))
    _keep(engine, body, messages, answer)
    send_json(handler, answer)


def fetch(handler: BaseHTTPRequestHandler, engine: Engine, name: str) -> None:
    """A kept answer."""
    send_json(handler, _kept(engine, name)["answer"])


def delete(handler: BaseHTTPRequestHandler, engine: Engine, name: str) -> None:
    """Forget a kept answer."""
    _kept(engine, name)
    engine.answers.pop(name, None)
    send_json(handler, {"id": name, "object": "response", "deleted": True})


def _kept(engine: Engine, name: str) -> dict[str, Any]:
    found = None if engine.switches.get("forget_responses") else engine.answers.get(name)
    if found is None:
        raise ApiError(f"no response with id {name}", status=404)
    return found


def _keep(
    engine: Engine, body: dict[str, Any], messages: list[dict[str, Any]], answer: dict[str, Any]
) -> None:
    if body.get("store") is False:
        return
    said = {"role": "assistant", "content": answer["output_text"]}
    engine.answers[answer["id"]] = {"answer": answer, "messages": [*messages, said]}
    while len(engine.answers) > KEPT:
        engine.answers.pop(next(iter(engine.answers)), None)


def _messages(body: dict[str, Any], engine: Engine) -> list[dict[str, Any]]:
    """Chat messages of `instructions`, the earlier conversation and `input`."""
    given = body.get("input")
    items: list[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
    if not items or not isinstance(items, list):
        raise ApiError("input must be a string or a list, and not empty", param="input")
    earlier: list[dict[str, Any]] = []
    if body.get("previous_response_id"):
        earlier = [
            m for m in _kept(engine, body["previous_response_id"])["messages"] if m["role"] != "system"
        ]
    system = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
    return [*system, *earlier, *(_message(item) for item in items)]


def _message(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise ApiError("an input item must be an object", param="input")
    if item.get("type") == "function_call_output":
        return {"role": "tool", "content": item.get("output")}
    if item.get("type") == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"type": "function", "function": function}],
        }
    return {"role": item.get("role"), "content": item.get("content")}


def _as_chat(body: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    chat = {key: value for key, value in body.items() if key not in ("input", "text")}
    form = (body.get("text") or {}).get("format")
    if form:
        chat["response_format"] = (
            {"type": form.get("type"), "json_schema": form} if form.get("type") == "json_schema" else form
        )
    return {**chat, "messages": messages}


def _object(
    engine: Engine, body: dict[str, Any], deltas: list[Delta], stats: Stats, name: str
) -> dict[str, Any]:
    text = joined(deltas, "content")
    thought = joined(deltas, "reasoning")
    output: list[dict[str, Any]] = []
    if thought:
        output.append(
            {"id": new_id("rs"), "type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]}
        )
    if text or not any(delta.call for delta in deltas):
        output.append(_message_item(new_id("msg"), text))
    output += [_call_item(delta.call) for delta in deltas if delta.call]
    return {
        **_head(engine, body, name, stats.finish),
        "output": output,
        "output_text": text,
        "usage": _usage(stats),
        "tensorfold": figures(stats, False),
    }


def _head(engine: Engine, body: dict[str, Any], name: str, finish: str | None) -> dict[str, Any]:
    cut = finish == "length"
    return {
        "id": name,
        "object": "response",
        "created_at": now(),
        "status": "in_progress" if finish is None else "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "model": engine.shape.name,
        "previous_response_id": body.get("previous_response_id"),
    }


def _message_item(name: str, text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": name, "type": "message", "role": "assistant", "status": "completed", "content": content}


def _call_item(call: Call) -> dict[str, Any]:
    arguments = json.dumps(call.arguments)
    return {
        "id": new_id("fc"),
        "type": "function_call",
        "call_id": new_id("call"),
        "name": call.name,
        "arguments": arguments,
    }


def _usage(stats: Stats) -> dict[str, Any]:
    plain = usage(stats)
    return {
        "input_tokens": plain["prompt_tokens"],
        "input_tokens_details": plain["prompt_tokens_details"],
        "output_tokens": plain["completion_tokens"],
        "output_tokens_details": plain["completion_tokens_details"],
        "total_tokens": plain["total_tokens"],
    }


def _events(
    request: Chat, engine: Engine, body: dict[str, Any], messages: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    name, stats, deltas = new_id("resp"), Stats(), []
    yield {"type": "response.created", "response": {**_head(engine, body, name, None), "output": []}}
    item = new_id("msg")
    for delta in engine.generate(request.job, stats):
        deltas.append(delta)
        if delta.kind == "reasoning":
            yield {"type": "response.reasoning_summary_text.delta", "item_id": item, "delta": delta.text}
        elif delta.kind == "content":
            yield {
                "type": "response.output_text.delta",
                "item_id": item,
                "output_index": 0,
                "delta": delta.text,
            }
    answer = _object(engine, body, deltas, stats, name)
    for index, done in enumerate(answer["output"]):
        yield {"type": "response.output_item.done", "output_index": index, "item": done}
    _keep(engine, body, messages, answer)
    yield {"type": f"response.{answer['status']}", "response": answer}
