"""Fixed forms of the answer, also after the model has reasoned."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .client import Api
from .promise import Promise
from .reading import message, need, parsed, said
from .registry import check, checks

PERSON = "Her name is Alice and she is 31. Tell me about her."
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
DIGITS = "[0-9]{3}-[0-9]{4}"


@dataclass(frozen=True)
class Form:
    """Fields of a request, and whether a text has the form that they ask for."""

    fields: dict[str, Any]
    fits: Callable[[str], bool]


def _is_person(text: str) -> bool:
    value = parsed(text, "the schema")
    return isinstance(value, dict) and set(value) == {"name", "age"} and type(value["age"]) is int


FORMS = {
    "json_object": Form(
        {"response_format": {"type": "json_object"}},
        lambda text: isinstance(parsed(text, "json_object"), dict),
    ),
    "json_schema": Form(
        {"response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}},
        _is_person,
    ),
    "guided_json": Form({"guided_json": SCHEMA}, _is_person),
    "guided_regex": Form({"guided_regex": DIGITS}, lambda text: bool(re.fullmatch(DIGITS, text))),
    "guided_choice": Form({"guided_choice": ["ninety", "eighty"]}, lambda t: t in ("ninety", "eighty")),
    "guided_grammar": Form({"guided_grammar": 'root ::= "left" | "right"'}, lambda t: t in ("left", "right")),
}


def form(name: str, api: Api, promise: Promise) -> None:
    """The answer has the form although the question does not ask for it."""
    _judge(name, said(api.chat(PERSON, max_tokens=512, **FORMS[name].fields)))


checks(form, "form", *FORMS)


@check
def form_after_reasoning(api: Api, promise: Promise) -> None:
    """The model reasons freely first, and the answer has the form all the same."""
    answer = api.chat(PERSON, reasoning_effort="low", max_tokens=8192, **FORMS["json_schema"].fields)
    need(bool(message(answer).get("reasoning_content")), "with a schema the model does not reason")
    _judge("json_schema", said(answer))


def _judge(name: str, text: str) -> None:
    need(FORMS[name].fits(text.strip()), f"{name} gave {text[:200]!r}")
