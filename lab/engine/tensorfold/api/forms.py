"""A fixed form of the reply: JSON, a schema, a regular expression, a choice or a grammar."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ..grammar import sentence
from ..pattern import example
from ..schema import Hints, instance
from .errors import ApiError

GUIDED = ("guided_json", "guided_regex", "guided_choice", "guided_grammar")


@dataclass(frozen=True)
class Form:
    """What the reply must look like; kind is object, json, regex, choice or grammar."""

    kind: str
    value: Any = None


def wanted_form(body: dict[str, Any]) -> Form | None:
    """The form a request asks for, at most one; a wrong one is a bad request."""
    given = [key for key in GUIDED if body.get(key) is not None]
    form = _response_format(body.get("response_format"))
    if len(given) + (form is not None) > 1:
        raise ApiError("only one of response_format and the guided fields may be given", param=given[0])
    if not given:
        return form
    key = given[0]
    value = body[key]
    if key == "guided_json" and isinstance(value, str):
        value = _parsed(value, key)
    if key == "guided_choice" and not (
        isinstance(value, list) and value and all(isinstance(item, str) for item in value)
    ):
        raise ApiError("guided_choice must be a list of strings", param=key)
    if key in ("guided_regex", "guided_grammar") and not isinstance(value, str):
        raise ApiError(f"{key} must be a string", param=key)
    return Form(key.removeprefix("guided_"), value)


def _response_format(value: Any) -> Form | None:
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return Form("object")
    if kind == "json_schema":
        schema = value.get("json_schema", value)
        if not isinstance(schema, dict) or "schema" not in schema:
            raise ApiError("response_format.json_schema needs a schema", param="response_format")
        return Form("json", schema["schema"])
    raise ApiError("response_format.type must be text, json_object or json_schema", param="response_format")


def _parsed(text: str, key: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise ApiError(f"{key} is not JSON", param=key) from None


def shaped(form: Form, question: str, plain: str) -> str:
    """The reply in its form; `plain` is what would be said without one."""
    try:
        if form.kind == "object":
            return json.dumps({"answer": plain})
        if form.kind == "json":
            return json.dumps(instance(form.value, Hints(question)))
        if form.kind == "regex":
            return example(form.value)
        if form.kind == "grammar":
            return sentence(form.value)
    except ValueError as error:
        raise ApiError(str(error)) from None
    return next((choice for choice in form.value if choice.lower() in question.lower()), str(form.value[0]))
