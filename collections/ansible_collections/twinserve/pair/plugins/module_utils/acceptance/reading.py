"""What checks read out of answers."""

from __future__ import annotations

import json
from typing import Any

from .client import Answer
from .found import Wrong


def message(answer: Answer) -> dict[str, Any]:
    """The one message of a chat answer."""
    choices = answer.good().get("choices") or [{}]
    found = choices[0].get("message")
    if not isinstance(found, dict):
        raise Wrong(f"{answer.what} gave no message: {answer.text[:200]}")
    return found


def said(answer: Answer) -> str:
    """What a chat answer says; empty is wrong."""
    text = message(answer).get("content")
    if not isinstance(text, str) or not text.strip():
        raise Wrong(f"{answer.what} gave an empty answer: {answer.text[:200]}")
    return text


def prompt_tokens(answer: Answer) -> int:
    """How long the prompt was."""
    return int(answer.good()["usage"]["prompt_tokens"])


def refusal(answer: Answer, *statuses: int) -> dict[str, Any]:
    """The error object of an answer that must be a refusal, 400 unless told otherwise."""
    answer.need(*(statuses or (400,)))
    error = answer.json().get("error")
    if not isinstance(error, dict) or not error.get("message"):
        raise Wrong(f"{answer.what} refused without a message: {answer.text[:200]}")
    return error


def parsed(text: str, what: str) -> Any:
    """JSON that the model wrote."""
    try:
        return json.loads(text)
    except ValueError:
        raise Wrong(f"{what} gave text that is not JSON: {text[:200]!r}") from None


def need(true: bool, text: str) -> None:
    """Say what is wrong unless it is right."""
    if not true:
        raise Wrong(text)
