"""From a request body to a generation: messages, media, form, tools, budget, and the reply."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from .. import answers
from ..engine import Engine
from ..reply import Call, Job, Reply
from ..tokens import decode, encode
from ..wording import ROLES, plain_text, prompt_ids
from .errors import ApiError
from .fields import budget, check_sampling, effort, flag, integer, mood, stops
from .forms import shaped, wanted_form
from .media import Media, collect
from .toolcalls import decide, read_tools


@dataclass(frozen=True)
class Chat:
    """One chat request, ready to run."""

    job: Job
    stream: bool
    with_ids: bool


def read_messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages, checked for shape."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ApiError("messages must be a list that is not empty", param="messages")
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise ApiError(f"a message must have a role, one of {', '.join(ROLES)}", param="messages")
        _check_content(message.get("content"))
    return messages


def _check_content(content: Any) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise ApiError("content must be a string or a list of parts", param="messages")
    for part in content:
        if part.get("type") in ("text", "input_text", "output_text") and not isinstance(
            part.get("text"), str
        ):
            raise ApiError("a text part must have a text", param="messages")


def read_chat(body: dict[str, Any], engine: Engine, param: str = "messages") -> Chat:
    """Read a chat request; every fault of it is an ApiError."""
    shape = engine.shape
    messages = read_messages(body)
    check_sampling(body)
    tools = read_tools(body)
    media = collect(messages, shape.vision, shape.vision_urls, engine.switches)
    level = effort(body, shape.thinking, shape.effort)
    prompt = prompt_ids(messages, tools, media.ids, level is not None)
    asked = integer(body, "max_completion_tokens", "max_tokens", "max_output_tokens")
    if asked and engine.switches.get("clamp_budget"):
        asked = min(asked, shape.window - len(prompt))
    room = budget(shape.window, len(prompt), asked, shape.max_tokens, param)
    reply = _spoilt(_reply(body, engine, messages, tools, media, level), engine)
    return Chat(Job(prompt, reply, room, stops(body)), flag(body, "stream"), flag(body, "return_token_ids"))


def _reply(
    body: dict[str, Any],
    engine: Engine,
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]],
    media: Media,
    level: str | None,
) -> Reply:
    question = next((plain_text(m.get("content")) for m in reversed(messages) if m["role"] == "user"), "")
    thinks = level and not engine.switches.get("never_reasons")
    thought = answers.reasoning(question, level) if level and thinks else ""
    form = None if thought and engine.switches.get("loose_after_reasoning") else wanted_form(body)
    last = messages[-1]
    calls = decide(tools, body.get("tool_choice"), question, last["role"] == "tool")
    if engine.switches.get("untyped_arguments"):
        calls = tuple(
            Call(one.name, {key: str(value) for key, value in one.arguments.items()}) for one in calls
        )
    if calls:
        return Reply(thought, "", calls)
    if last["role"] == "tool":
        return Reply(thought, f"The tool answered: {plain_text(last.get('content'))}")
    take = secrets.randbelow(10**9) if engine.switches.get("random_answers") else mood(body)
    plain = answers.answer(question, engine.shape.name, media.images, media.videos, take, media.colour)
    return Reply(thought, shaped(form, question, plain) if form else plain)


def _spoilt(reply: Reply, engine: Engine) -> Reply:
    """The reply of a broken decoder, if the lab wants one."""
    if engine.switches.get("empty_reply"):
        return Reply()
    if engine.switches.get("collapsed_reply"):
        return Reply("", answers.COLLAPSED)
    return reply


def read_completion(body: dict[str, Any], engine: Engine) -> list[Job]:
    """The generations of a completion request: one for each prompt."""
    prompt = body.get("prompt")
    batch = prompt if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int) else [prompt]
    check_sampling(body)
    asked = integer(body, "max_tokens", "max_completion_tokens")
    return [_completion_job(body, engine, item, asked) for item in batch]


def _completion_job(body: dict[str, Any], engine: Engine, prompt: Any, asked: int | None) -> Job:
    text, ids = read_prompt(prompt)
    room = budget(engine.shape.window, len(ids), asked, engine.shape.max_tokens, "prompt")
    form = wanted_form(body)
    plain = answers.answer(text, engine.shape.name, 0, 0)
    reply = _spoilt(Reply("", shaped(form, text, plain) if form else plain), engine)
    return Job(ids, reply, room, stops(body))


def read_prompt(prompt: Any) -> tuple[str, list[int]]:
    """Text and ids of one prompt, given as either."""
    if isinstance(prompt, str) and prompt:
        return prompt, encode(prompt)
    if isinstance(prompt, list) and prompt and all(isinstance(item, int) for item in prompt):
        try:
            return decode(prompt), prompt
        except ValueError as error:
            raise ApiError(str(error), param="prompt") from None
    raise ApiError("prompt must be a string or a list of token ids, and not empty", param="prompt")
