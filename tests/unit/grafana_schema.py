"""A dashboard judged by Grafana's own schema: by the models that Grafana generates from it for Python."""

from __future__ import annotations

import enum
import json
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.cog.runtime import UnknownDataquery
from grafana_foundation_sdk.models.dashboard import Dashboard

_PLAIN: Mapping[object, tuple[type, ...]] = {float: (int, float), int: (int,), str: (str,), bool: (bool,)}


def faults(dashboard: dict[str, Any]) -> list[str]:
    """Where it has a field that no model knows, or a value of another kind than the field has."""
    register_default_plugins()
    read = Dashboard.from_json(dashboard)
    written = json.loads(json.dumps(read, cls=JSONEncoder))
    return [*_lost(dashboard, written, ""), *_mistyped(read, Dashboard, "")]


def _lost(given: Any, kept: Any, path: str) -> Iterator[str]:
    """What did not come back; models add what has a default, and leave out null."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for name, value in given.items():
            if name in kept:
                yield from _lost(value, kept[name], f"{path}/{name}")
            elif value is not None:
                yield f"{path}/{name} is unknown"
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for number, (value, other) in enumerate(zip(given, kept, strict=True)):
            yield from _lost(value, other, f"{path}/{number}")
    elif given != kept:
        yield f"{path} is read as {kept!r}"


def _mistyped(value: Any, hint: Any, path: str) -> Iterator[str]:
    """Models keep whatever they are given, so values are held against what their fields are declared as."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        kinds = typing.get_args(hint)
        own = [one for one in kinds if isinstance(one, type) and isinstance(value, one)]
        yield from min((list(_mistyped(value, one, path)) for one in own or kinds), key=len)
    elif typing.get_origin(hint) is list and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _mistyped(item, typing.get_args(hint)[0], f"{path}/{number}")
    elif isinstance(value, UnknownDataquery):
        yield f"{path} asks a data source that is unknown"
    elif hasattr(value, "to_json") and (hint is object or isinstance(value, hint)):
        for name, declared in typing.get_type_hints(type(value)).items():
            yield from _mistyped(getattr(value, name), declared, f"{path}/{name}")
    elif not _fits(value, hint):
        yield f"{path} is {value!r}"


def _fits(value: Any, hint: Any) -> bool:
    if hint is type(None):
        return value is None
    if typing.get_origin(hint) is typing.Literal:
        return value in typing.get_args(hint)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return value in [one.value for one in hint]
    if hint in _PLAIN:
        return type(value) in _PLAIN[hint]
    if typing.get_origin(hint) is dict:
        return isinstance(value, dict)
    # Free by the schema; but a part that should have been read by a model of its own is not.
    return hint is object and not isinstance(value, dict)
