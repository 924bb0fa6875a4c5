"""Fixed forms of the answer, also after the model has reasoned."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .client import Api
from .found import NotPromised
from .manner import nested
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
LITTLE = "low"
CHOICE = ["ninety", "eighty"]
DIGITS = "[0-9]{3}-[0-9]{4}"


@dataclass(frozen=True)
class Form:
    """What a request asks for, and whether a text has that form.

    `guided` is for forms that have no field of OpenAI's: each engine has its own. `begins` is how a text
    begins that has the form and may go on for ever: it may be cut off.
    """

    fits: Callable[[str], bool]
    fields: Mapping[str, Any] = field(default_factory=dict)
    guided: tuple[str, Any] | None = None
    begins: str | None = None

    def asked(self, promise: Promise) -> dict[str, Any]:
        """The fields of the request."""
        if self.guided is None:
            return {**self.fields}
        kind, wanted = self.guided
        return nested(promise.guided_field.format(kind=kind), wanted)


def _is_person(text: str) -> bool:
    value = parsed(text, "the schema")
    return isinstance(value, dict) and set(value) == {"name", "age"} and type(value["age"]) is int


FORMS = {
    "json_object": Form(
        lambda text: isinstance(parsed(text, "json_object"), dict),
        {"response_format": {"type": "json_object"}},
        begins=r'\s*\{\s*"',
    ),
    "json_schema": Form(
        _is_person,
        {"response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}},
    ),
    "guided_json": Form(_is_person, guided=("json", SCHEMA)),
    "guided_regex": Form(lambda text: bool(re.fullmatch(DIGITS, text)), guided=("regex", DIGITS)),
    "guided_choice": Form(lambda text: text in CHOICE, guided=("choice", CHOICE)),
    "guided_grammar": Form(
        lambda text: text in ("left", "right"), guided=("grammar", 'root ::= "left" | "right"')
    ),
}


def form(name: str, api: Api, promise: Promise) -> None:
    """The answer has the form although the question does not ask for it."""
    wanted = FORMS[name]
    answer = api.chat(PERSON, reply=128, **wanted.asked(promise))
    text = said(answer)
    if wanted.begins and answer.json()["choices"][0]["finish_reason"] == "length":
        need(
            re.match(wanted.begins, text) is not None,
            f"{name} gave text that begins otherwise: {text[:200]!r}",
        )
        return
    _judge(name, text)


checks(form, "form", *FORMS)


@check
def form_after_reasoning(api: Api, promise: Promise) -> None:
    """The model reasons freely first, and the answer has the form all the same."""
    if LITTLE not in promise.reasoning_effort:
        raise NotPromised(f"this release has no reasoning_effort {LITTLE}")
    fields = FORMS["json_schema"].asked(promise)
    answer = api.chat(PERSON, effort=LITTLE, max_tokens=8192, **fields)
    need(bool(message(answer).get(promise.reasoning_field)), "with a schema the model does not reason")
    _judge("json_schema", said(answer))


def _judge(name: str, text: str) -> None:
    need(FORMS[name].fits(text.strip()), f"{name} gave {text[:200]!r}")
