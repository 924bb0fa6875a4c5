"""When the simulated model calls a tool, and with which arguments."""

from __future__ import annotations

import re
from typing import Any

from ..reply import Call
from ..schema import Hints, instance
from .errors import ApiError

ORDER = re.compile(r"\b(call|use|invoke|run|tool|function)\b", re.IGNORECASE)


def read_tools(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The offered functions as {"name", "description", "parameters"}, from both spellings of the API."""
    tools = body.get("tools") or []
    if not isinstance(tools, list):
        raise ApiError("tools must be a list", param="tools")
    found = []
    for tool in tools:
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        if (
            not isinstance(function, dict)
            or tool.get("type") != "function"
            or not isinstance(function.get("name"), str)
        ):
            raise ApiError("a tool must be of type function and have a name", param="tools")
        found.append(function)
    return found


def decide(tools: list[dict[str, Any]], choice: Any, question: str, answered: bool) -> tuple[Call, ...]:
    """The calls to make: none, or one; `answered` means that the conversation ends with a tool's result."""
    if not tools or choice == "none":
        return ()
    if isinstance(choice, dict):
        name = choice.get("function", choice).get("name")
        named = [tool for tool in tools if tool["name"] == name]
        if not named:
            raise ApiError(f"tool_choice names an unknown tool: {name}", param="tool_choice")
        return (_call(named[0], question),)
    if answered:
        return ()
    best = max(tools, key=lambda tool: _relevance(tool, question))
    if choice == "required" or _relevance(best, question) > 0:
        return (_call(best, question),)
    return ()


def _relevance(tool: dict[str, Any], question: str) -> int:
    """3 if it is named, 1 for each word of its name, 1 if the question orders some tool, else 0."""
    text = question.lower()
    if tool["name"].lower() in text:
        return 3
    words = {word for word in re.split(r"[\W_]+", tool["name"].lower()) if len(word) > 3}
    return sum(word in text for word in words) or (1 if ORDER.search(question) else 0)


def _call(tool: dict[str, Any], question: str) -> Call:
    parameters = tool.get("parameters") or {"type": "object", "properties": {}}
    try:
        arguments = instance({"type": "object", **parameters}, Hints(question))
    except ValueError as error:
        raise ApiError(f"tool {tool['name']}: {error}", param="tools") from None
    return Call(tool["name"], arguments)
