"""What the user's extra arguments change: the engine takes the last value of an option, so they win."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .settings_spec import NotTaken, Setting, convert


@dataclass
class Overrides:
    """Settings as the extra arguments make them, and what is wrong with the arguments."""

    values: dict[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def overrides(words: Sequence[str], release: Mapping[str, Any], specs: Mapping[str, Setting]) -> Overrides:
    """Read `words` with the engine's `flags`, `switches` and `managed_flags`; the rest is the engine's."""
    result = Overrides()
    kinds = ("managed_flags", "switches", "flags")
    known = [name for kind in kinds for name in release.get(kind, {})]
    rest = list(words)
    while rest:
        option, has_value, value = rest.pop(0).partition("=")
        # Some parsers take both; one that does not refuses it by itself.
        option = option.replace("_", "-")
        if instead := release.get("managed_flags", {}).get(option):
            result.faults.append(f"extra_args: {option} is managed; use {instead}")
        elif option in release.get("switches", {}):
            result.values.update(release["switches"][option])
        elif setting := release.get("flags", {}).get(option):
            if not has_value and not rest:
                result.faults.append(f"extra_args: {option} has no value")
                break
            _take(result, specs[setting], value if has_value else rest.pop(0))
        elif full := _abbreviated(option, known):
            result.faults.append(f"extra_args: write {option} in full ({full})")
    return result


def _abbreviated(option: str, known: Sequence[str]) -> str:
    """What this may stand for: argparse takes the beginning of a name, which would walk past our rules."""
    return " or ".join(name for name in known if len(option) > 2 and name.startswith(option))


def _take(result: Overrides, setting: Setting, value: str) -> None:
    try:
        result.values[setting.name] = convert(setting, value)
    except NotTaken as refusal:
        result.faults.append(f"extra_args: {refusal}")
