"""The shortest text that a regular expression matches, by walking its parse tree."""

from __future__ import annotations

import re
import re._parser as sre  # type: ignore[import-not-found]
from typing import Any

MINIMUM = 1


def example(pattern: str) -> str:
    """A text that fully matches; ValueError if the pattern is wrong or needs what is not understood here."""
    try:
        compiled = re.compile(pattern)
        text = _sequence(sre.parse(pattern), {})
    except re.error as error:
        raise ValueError(f"the regular expression is wrong: {error}") from None
    if compiled.fullmatch(text) is None:
        raise ValueError("no text was found that matches the regular expression")
    return text


def _sequence(tree: Any, groups: dict[int, str]) -> str:
    return "".join(_node(str(operator), argument, groups) for operator, argument in tree)


def _node(operator: str, argument: Any, groups: dict[int, str]) -> str:
    if operator == "LITERAL":
        return chr(argument)
    if operator == "NOT_LITERAL":
        return "a" if argument != ord("a") else "b"
    if operator == "ANY":
        return "a"
    if operator == "IN":
        return _member(argument)
    if operator in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        low, high, body = argument
        return _sequence(body, groups) * min(max(int(low), MINIMUM), int(high))
    if operator == "SUBPATTERN":
        number, _, _, body = argument
        text = _sequence(body, groups)
        if number is not None:
            groups[number] = text
        return text
    if operator == "BRANCH":
        return _sequence(argument[1][0], groups)
    if operator == "GROUPREF":
        return groups.get(argument, "")
    if operator == "ATOMIC_GROUP":
        return _sequence(argument, groups)
    return ""  # anchors and assertions take no text; the full match afterwards has the last word


def _member(choices: Any) -> str:
    """The first printable character of a class."""
    negated = str(choices[0][0]) == "NEGATE"
    if not negated:
        operator, argument = choices[0]
        if str(operator) == "LITERAL":
            return chr(argument)
        if str(operator) == "RANGE":
            return chr(argument[0])
        return {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}.get(str(argument), "-")
    for candidate in "a1 -_AZ.":
        if not any(_holds(str(operator), argument, candidate) for operator, argument in choices[1:]):
            return candidate
    return "~"


def _holds(operator: str, argument: Any, candidate: str) -> bool:
    if operator == "LITERAL":
        return bool(ord(candidate) == argument)
    if operator == "RANGE":
        return bool(argument[0] <= ord(candidate) <= argument[1])
    tests = {
        "CATEGORY_DIGIT": candidate.isdigit(),
        "CATEGORY_SPACE": candidate.isspace(),
        "CATEGORY_WORD": candidate.isalnum(),
    }
    return tests.get(str(argument), False)
