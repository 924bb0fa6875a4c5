"""POST /v1/chat/completions and POST /v1/completions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

from ..engine import Engine
from ..reply import Delta, Job, Stats
from .compose import Chat, read_chat, read_completion
from .fields import flag
from .wire import call_object, new_id, now, send_events, send_json, usage


def chat(handler: BaseHTTPRequestHandler, engine: Engine, body: dict[str, Any]) -> None:
    """Answer a chat request, streamed or whole."""
    request = read_chat(body, engine)
    if request.stream:
        send_events(handler, _chunks(request, engine), engine.switches.get("cut_stream_after"))
    else:
        send_json(handler, _whole(request, engine))


def _whole(request: Chat, engine: Engine) -> dict[str, Any]:
    stats = Stats()
    deltas = list(engine.generate(request.job, stats))
    message: dict[str, Any] = {"role": "assistant", "content": joined(deltas, "content") or None}
    thought = joined(deltas, "reasoning")
    if thought:
        message["reasoning_content"] = thought
    calls = [call_object(delta.call) for delta in deltas if delta.call]
    if calls:
        message["tool_calls"] = calls
    return {
        "id": new_id("chatcmpl"),
        "object": "chat.completion",
        "created": now(),
        "model": engine.shape.name,
        "choices": [{"index": 0, "message": message, "finish_reason": stats.finish}],
        "usage": usage(stats),
        "tensorfold": figures(stats, request.with_ids),
    }


def _chunks(request: Chat, engine: Engine) -> Iterator[dict[str, Any]]:
    stats = Stats()
    head = {
        "id": new_id("chatcmpl"),
        "object": "chat.completion.chunk",
        "created": now(),
        "model": engine.shape.name,
    }

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant"})
    calls = 0
    for piece in _streamed(request, engine, stats):
        if piece.call:
            yield chunk({"tool_calls": [call_object(piece.call, calls)]})
            calls += 1
        else:
            yield chunk({"reasoning_content" if piece.kind == "reasoning" else "content": piece.text})
    last = {**chunk({}, stats.finish), "usage": usage(stats), "tensorfold": figures(stats, request.with_ids)}
    if engine.switches.get("no_usage"):
        last.pop("usage")
    yield last


def _streamed(request: Chat, engine: Engine, stats: Stats) -> Iterator[Delta]:
    """The pieces as they come, or in the wrong way that the lab wants."""
    pieces = engine.generate(request.job, stats)
    if engine.switches.get("one_piece"):
        pieces = iter([Delta("content", joined(list(pieces), "content"))])
    if engine.switches.get("late_reasoning"):
        pieces = iter(sorted(pieces, key=lambda piece: piece.kind == "reasoning"))
    yield from pieces


def completions(handler: BaseHTTPRequestHandler, engine: Engine, body: dict[str, Any]) -> None:
    """Answer a completion request, streamed or whole."""
    jobs = read_completion(body, engine)
    if flag(body, "stream"):
        send_events(handler, _completion_chunks(jobs, engine), engine.switches.get("cut_stream_after"))
        return
    done = []
    for job in jobs:
        stats = Stats()
        done.append(("".join(delta.text for delta in engine.generate(job, stats)), stats))
    send_json(
        handler,
        {
            "id": new_id("cmpl"),
            "object": "text_completion",
            "created": now(),
            "model": engine.shape.name,
            "choices": [
                {"index": index, "text": text, "finish_reason": stats.finish, "logprobs": None}
                for index, (text, stats) in enumerate(done)
            ],
            "usage": usage(summed([stats for _, stats in done])),
            "tensorfold": figures(done[-1][1], flag(body, "return_token_ids")),
        },
    )


def _completion_chunks(jobs: list[Job], engine: Engine) -> Iterator[dict[str, Any]]:
    head = {"id": new_id("cmpl"), "object": "text_completion", "created": now(), "model": engine.shape.name}
    for index, job in enumerate(jobs):
        stats = Stats()
        for piece in engine.generate(job, stats):
            yield {**head, "choices": [{"index": index, "text": piece.text, "finish_reason": None}]}
        last = {**head, "choices": [{"index": index, "text": "", "finish_reason": stats.finish}]}
        yield {**last, "usage": usage(stats), "tensorfold": figures(stats, False)}


def joined(deltas: list[Delta], kind: str) -> str:
    """The text of one kind."""
    return "".join(delta.text for delta in deltas if delta.kind == kind)


def summed(all_stats: list[Stats]) -> Stats:
    """Usage of several generations together."""
    return Stats(
        prompt_tokens=sum(stats.prompt_tokens for stats in all_stats),
        cached=sum(stats.cached for stats in all_stats),
        reasoning_tokens=sum(stats.reasoning_tokens for stats in all_stats),
        ids=[token for stats in all_stats for token in stats.ids],
    )


def figures(stats: Stats, with_ids: bool) -> dict[str, Any]:
    """The engine's own figures, at the top level of an answer."""
    found: dict[str, Any] = {
        "prefill_s": round(stats.prefill_s, 4),
        "decode_s": round(stats.decode_s, 4),
        "cached": stats.cached,
        "rounds": stats.rounds,
        "drafted": stats.drafted,
        "accepted": stats.accepted,
        "token_sha": hashlib.sha256(repr(stats.ids).encode()).hexdigest()[:16],
    }
    return {**found, "token_ids": stats.ids} if with_ids else found
