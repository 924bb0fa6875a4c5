"""How a prompt is written for the model and how a tool call is written by it."""

from __future__ import annotations

import json
from typing import Any

from .reply import Call
from .tokens import encode, mark

ROLES = {
    "system": "<|system|>",
    "developer": "<|system|>",
    "user": "<|user|>",
    "assistant": "<|assistant|>",
    "tool": "<|observation|>",
}


def call_text(call: Call) -> str:
    """A call as the model writes it; its length is the call's cost in tokens."""
    return f"<tool_call>{call.name}{json.dumps(call.arguments)}</tool_call>"


def plain_text(content: Any) -> str:
    """The text of a message's content, which may be a string, null or a list of parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(
        part["text"] for part in content if part.get("type") in ("text", "input_text", "output_text")
    )


def prompt_ids(
    messages: list[dict[str, Any]], tools: list[dict[str, Any]], media: list[int], think: bool
) -> list[int]:
    """Ids of a whole chat prompt: tools, messages with media after the text, and the mark of the reply."""
    ids: list[int] = []
    if tools:
        ids += [mark("<|system|>"), *encode("# Tools\n" + json.dumps(tools, sort_keys=True))]
    for message in messages:
        text = plain_text(message.get("content"))
        for call in message.get("tool_calls") or []:
            text += json.dumps(call.get("function", {}), sort_keys=True)
        ids += [mark(ROLES[message["role"]]), *encode(text)]
    return [*ids, *media, mark("<|assistant|>"), *encode("<think>" if think else "<think></think>")]
