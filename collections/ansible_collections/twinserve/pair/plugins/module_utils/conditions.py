"""The small language in which engine data says when something holds: `{setting: wanted}`, all of them.

Wanted is a value, a list of values, or operators: `above`, `below`, `equals` (a number, another setting,
`setting + 30` or `default`), `matches` (a pattern for a whole text), `not` (a value, a list or `default`),
`given` (the user set it), `set` (it has a value). What is not known, because what the user gave could not be
read, makes its condition false.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT = "default"


@dataclass(frozen=True)
class Facts:
    """What conditions are asked of: values, what they would be by default, and which ones the user gave."""

    values: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    given: frozenset[str] = frozenset()


def is_set(value: Any) -> bool:
    """Zero and false are values; nothing, an empty text and an empty collection are none."""
    return value is not None and value != "" and value != [] and value != {}


def holds(when: Mapping[str, Any] | None, facts: Facts) -> bool:
    """Whether every condition in `when` is true; nothing asked is true."""
    return all(_matches(name, wanted, facts) for name, wanted in (when or {}).items())


def choose(value: Any, facts: Facts) -> Any:
    """The first case that holds, for a list of cases (`{when, value}`); anything else is the value itself."""
    if not is_cases(value):
        return value
    return next((case["value"] for case in value if holds(case.get("when"), facts)), None)


def is_cases(value: Any) -> bool:
    """Whether `value` is a list of cases rather than a plain list."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(v, Mapping) and "value" in v for v in value)
    )


def _matches(name: str, wanted: Any, facts: Facts) -> bool:
    if name not in facts.values:
        return False
    if isinstance(wanted, Mapping):
        return all(_operator(name, operator, operand, facts) for operator, operand in wanted.items())
    return _equal(facts.values[name], wanted)


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_equal(value, one) for one in wanted)
    # True == 1 in Python, but `context: 0` must not match a false switch.
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)


def _operator(name: str, operator: str, operand: Any, facts: Facts) -> bool:
    value = facts.values[name]
    if operator == "given":
        return (name in facts.given) is bool(operand)
    if operator == "set":
        return is_set(value) is bool(operand)
    if operator == "matches":
        return isinstance(value, str) and re.fullmatch(operand, value) is not None
    other = _operand(name, operand, facts)
    if operator == "not":
        return not _equal(value, other)
    if operator == "equals":
        return _equal(value, other)
    if not isinstance(value, int | float) or not isinstance(other, int | float):
        return False
    if operator == "above":
        return bool(value > other)
    if operator == "below":
        return bool(value < other)
    raise ValueError(f"unknown operator {operator!r} in a condition on {name}")


def _operand(name: str, operand: Any, facts: Facts) -> Any:
    return facts.defaults.get(name) if operand == DEFAULT else amount(operand, facts)


def amount(operand: Any, facts: Facts) -> Any:
    """What `operand` stands for: another setting's value, `setting + 30`, else itself."""
    if not isinstance(operand, str):
        return operand
    other, plus, number = operand.partition(" + ")
    value = facts.values.get(other, operand)
    return value + int(number) if plus and isinstance(value, int | float) else value
