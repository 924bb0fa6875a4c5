"""A small value that satisfies a JSON schema, with the prompt's own words and numbers where they fit."""

from __future__ import annotations

import re
from typing import Any

from .pattern import example as matching

DEPTH = 24


class Hints:
    """Words and numbers of the prompt, handed out in order."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._numbers = [float(found) for found in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])", text)]
        quoted = re.findall(r"[\"'`“]([^\"'`”]{1,80})[\"'`”]", text)
        names = re.findall(r"(?<=[a-z,] )[A-Z][\w-]+(?: [A-Z][\w-]+)*", text)
        self._words = quoted + names

    def number(self) -> float | None:
        """The next number of the prompt."""
        return self._numbers.pop(0) if self._numbers else None

    def word(self) -> str | None:
        """The next quoted text or name of the prompt."""
        return self._words.pop(0) if self._words else None


def instance(schema: Any, hints: Hints) -> Any:
    """A value for the schema; ValueError for a schema that cannot be met or is not one."""
    return _value(schema, schema, hints, 0)


def _value(schema: Any, root: Any, hints: Hints, depth: int) -> Any:
    if schema is True or schema == {}:
        return hints.text[:80]
    if not isinstance(schema, dict) or depth > DEPTH:
        raise ValueError("the schema is not an object or nests without end")
    if "$ref" in schema:
        return _value(_resolve(schema["$ref"], root), root, hints, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return next(
            (item for item in schema["enum"] if str(item).lower() in hints.text.lower()), schema["enum"][0]
        )
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _value(schema[key][0], root, hints, depth + 1)
    if "allOf" in schema:
        merged: dict[str, Any] = {}
        for part in schema["allOf"]:
            merged = _merge(merged, _resolve(part["$ref"], root) if "$ref" in part else part)
        return _value(merged, root, hints, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return _typed(kind[0] if isinstance(kind, list) else kind, schema, root, hints, depth)


def _typed(kind: str, schema: dict[str, Any], root: Any, hints: Hints, depth: int) -> Any:
    if kind == "object":
        wanted = schema.get("required")
        names = schema.get("properties", {})
        return {
            name: _value(part, root, hints, depth + 1)
            for name, part in names.items()
            if wanted is None or name in wanted
        }
    if kind == "array":
        count = max(1, schema.get("minItems", 1)) if schema.get("maxItems", 1) > 0 else 0
        return [_value(schema.get("items", {"type": "string"}), root, hints, depth + 1) for _ in range(count)]
    if kind == "string":
        return _string(schema, hints)
    if kind in ("integer", "number"):
        return _number(kind, schema, hints)
    if kind in ("boolean", "null"):
        return True if kind == "boolean" else None
    raise ValueError(f"the schema has an unknown type {kind!r}")


def _string(schema: dict[str, Any], hints: Hints) -> str:
    if "pattern" in schema:
        return matching(schema["pattern"])
    fixed = {
        "date": "2026-01-31",
        "date-time": "2026-01-31T12:00:00Z",
        "email": "user@example.org",
        "uri": "https://example.org/",
    }
    text = fixed.get(schema.get("format", "")) or hints.word() or "text"
    return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength")]


def _number(kind: str, schema: dict[str, Any], hints: Hints) -> float | int:
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + 1
    if "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - 1
    hint = hints.number()
    value = hint if hint is not None else 1.0
    value = max(value, low) if low is not None else value
    value = min(value, high) if high is not None else value
    return int(value) if kind == "integer" or float(value).is_integer() else value


def _resolve(reference: str, root: Any) -> Any:
    found = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step and not (isinstance(found, dict) and step in found):
            raise ValueError(f"the schema has no {reference}")
        found = found[step] if step else found
    return found


def _merge(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {
        **one,
        **other,
        "properties": {**one.get("properties", {}), **other.get("properties", {})},
        "required": [*one.get("required", []), *other.get("required", [])],
    }
