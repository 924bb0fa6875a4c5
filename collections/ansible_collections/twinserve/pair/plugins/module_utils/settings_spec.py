"""What a setting is, and how a value that a user wrote becomes a typed one.

The specification itself is data (`engines/*/settings.yml`); this reads it and converts values. All messages
name the setting, the value and what is taken.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any

BY_RELEASE = "by release"
TRUE = frozenset({"1", "true", "yes", "on", "y", "t"})
FALSE = frozenset({"0", "false", "no", "off", "n", "f"})


class NotTaken(ValueError):
    """A value that a setting does not take; `text` overrides the usual message."""

    def __init__(self, text: str | None = None) -> None:
        super().__init__(text or "")
        self.text = text


@dataclass(frozen=True)
class Setting:
    """One entry of the specification."""

    name: str
    type: str
    says: str
    group: str
    default: Any = None
    choices: tuple[Any, ...] = ()
    min: float | None = None
    max: float | None = None
    multiple_of: int | None = None
    pattern: str | None = None
    pattern_says: str | None = None
    pattern_fails: str | None = None  # said behind the setting's name instead of the usual message
    scope: str = "pair"
    secret: bool = False
    default_with: str | None = None  # the default holds only while this other setting is at its own
    limits_of: str = ""  # the release whose limits these are, so that messages can name it

    @property
    def node_local(self) -> bool:
        """Whether hosts of a pair may differ in it."""
        return self.scope == "node"

    def narrowed(self, allowed: Mapping[str, Any], release: str) -> Setting:
        """The same setting with the limits of `release`."""
        changed: dict[str, Any] = {key: allowed[key] for key in ("min", "max") if key in allowed}
        if "choices" in allowed:
            changed["choices"] = tuple(allowed["choices"])
        return replace(self, limits_of=release, **changed)

    def takes(self) -> str:
        """What it takes, in words."""
        if self.choices:
            return listed([show(one) if isinstance(one, bool) else str(one) for one in self.choices])
        if self.type in ("int", "decimal"):
            return _number_says(self)
        if self.type == "numbers":
            return f"a list, each {_number_says(replace(self, type='int'))}"
        if self.pattern_says:
            return self.pattern_says
        return {
            "bool": "true or false",
            "map": "a map of names and values",
            "list": "a list",
            "words": "a list of words, or one text",
        }.get(self.type, "text (in quotes)")


def parse_settings(data: Mapping[str, Mapping[str, Any]]) -> dict[str, Setting]:
    """The specification from its data; raises ValueError for an entry with unknown or missing keys."""
    known = {item.name for item in fields(Setting)} - {"name", "limits_of"}
    parsed = {}
    for name, entry in data.items():
        if strange := set(entry) - known:
            raise ValueError(f"setting {name}: unknown keys {sorted(strange)}")
        if entry["type"] not in _CONVERT:
            raise ValueError(f"setting {name}: unknown type {entry['type']!r}")
        values = {**entry, "choices": tuple(entry.get("choices", ()))}
        parsed[name] = Setting(name=name, **values)
    return parsed


def convert(setting: Setting, value: Any) -> Any:
    """`value` as the setting's type; raises NotTaken, whose text is the whole message."""
    try:
        return _CONVERT[setting.type](setting, value)
    except NotTaken as refusal:
        raise NotTaken(refusal.text or refused(setting, value)) from None


def refused(setting: Setting, value: Any) -> str:
    """The usual message for a value that is not taken."""
    suffix = f" (release {setting.limits_of})" if setting.limits_of else ""
    if setting.secret:
        return f"{setting.name} has a value that it does not take: it takes {setting.takes()}"
    if setting.type == "bool":
        return f"{setting.name} is 0 or 1, not {show(value)} (true, false, yes and no are taken too)"
    # `-e` makes a text of everything: 2000000 reads better than '2000000'.
    number = (
        setting.type in ("int", "decimal") and isinstance(value, str) and value.replace(".", "").isdigit()
    )
    return f"{setting.name} is {value if number else show(value)}: it takes {setting.takes()}{suffix}"


def show(value: Any) -> str:
    """A value as the user would write it in YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, str) else str(value)


def number_text(value: float) -> str:
    """A number in its shortest plain form: 12.5, 11, never 1e+06."""
    text = format(Decimal(str(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def listed(words: Sequence[str]) -> str:
    """`a, b or c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _number_says(setting: Setting) -> str:
    if setting.min is not None and setting.min == setting.max:
        return f"only {number_text(setting.min)}"
    kind = "a whole number" if setting.type == "int" else "a number"
    if setting.min is not None and setting.max is not None:
        return f"{kind} from {number_text(setting.min)} to {number_text(setting.max)}"
    return kind if setting.min is None else f"{kind} of {number_text(setting.min)} or more"


def _bool(_setting: Setting, value: Any) -> bool:
    text = str(value).strip().lower()
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise NotTaken


def _number(setting: Setting, value: Any) -> float | int:
    shape = r"-?\d+" if setting.type == "int" else r"-?\d+(\.\d+)?"
    text = str(value).strip()
    if not re.fullmatch(shape, text):
        raise NotTaken
    number: float | int = float(text) if "." in text else int(text)
    if setting.min is not None and number < setting.min or setting.max is not None and number > setting.max:
        raise NotTaken
    if setting.multiple_of and number % setting.multiple_of:
        limit = "" if setting.max is None else f" up to {number_text(setting.max)}"
        raise NotTaken(f"{setting.name} must be a multiple of {setting.multiple_of}{limit}")
    return int(number) if number == int(number) else number


def _choice(setting: Setting, value: Any) -> Any:
    for choice in setting.choices:
        if isinstance(choice, bool):
            # Among other words, as in `auto, true or false`.
            same = str(value).strip().lower() in (TRUE if choice else FALSE)
        else:
            same = not isinstance(value, bool) and str(value) == str(choice)
        if same:
            return choice
    raise NotTaken


def _text(setting: Setting, value: Any) -> str:
    if not isinstance(value, str):
        # YAML makes numbers of digits, and a number has lost its form: leading zeros, length.
        says = setting.pattern_says or ""
        raise NotTaken(f"{setting.name} must be {says}, not {show(value)}" if "quoted" in says else None)
    if setting.pattern and not re.fullmatch(setting.pattern, value):
        fails = setting.pattern_fails
        raise NotTaken(f"{setting.name} {fails}, not {show(value)}" if fails else None)
    return value


def _list(setting: Setting, value: Any) -> list[str]:
    items = [item.strip() for item in value.split(",")] if isinstance(value, str) else value
    if not isinstance(items, list):
        raise NotTaken
    return [_text(setting, item) for item in items]


def _numbers(setting: Setting, value: Any) -> list[int]:
    """Whole numbers: a list, one alone, or a text with commas between."""
    items = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    if not items or any(isinstance(item, bool) for item in items):
        raise NotTaken
    return [int(_number(replace(setting, type="int"), item)) for item in items]


def _words(_setting: Setting, value: Any) -> list[str]:
    if isinstance(value, str):
        try:
            return shlex.split(value)
        except ValueError as error:
            raise NotTaken(f"{_setting.name} is {value!r}: {str(error).lower()}") from None
    if not isinstance(value, list) or any(
        isinstance(word, bool | list | dict) or word is None for word in value
    ):
        raise NotTaken
    return [word if isinstance(word, str) else number_text(word) for word in value]


def _map(setting: Setting, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise NotTaken
    result = {}
    for name, one in value.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", str(name)) or isinstance(one, list | Mapping):
            raise NotTaken(f"{setting.name}: {name} is not a variable with a plain value")
        if one not in (None, ""):
            result[str(name)] = value_text(one)
    if setting.pattern and not all(re.fullmatch(setting.pattern, one) for one in result.values()):
        raise NotTaken
    return result


def value_text(value: Any) -> str:
    """A value as it reaches the engine: switches as 1 and 0, numbers in plain form, nothing as empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    return number_text(value) if isinstance(value, int | float) else str(value)


_CONVERT: dict[str, Callable[[Setting, Any], Any]] = {
    "bool": _bool,
    "int": _number,
    "decimal": _number,
    "choice": _choice,
    "text": _text,
    "list": _list,
    "words": _words,
    "numbers": _numbers,
    "map": _map,
}
