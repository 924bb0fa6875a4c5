"""From what users wrote to typed settings: defaults, limits and rules of the release, and all that is wrong.

Pure: everything comes in as plain data. Nothing here knows an engine; what may not go together is data too
(`rules`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Template
from typing import Any

from .conditions import Facts, choose, holds, is_cases, is_set
from .extra_args import overrides
from .image_recipe import resolved
from .settings_spec import BY_RELEASE, NotTaken, Setting, convert, listed, show, value_text

_SAME = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True)
class Fault:
    """Something that is wrong; `node` says that it is this host's own affair, not the pair's."""

    text: str
    node: bool = False


@dataclass
class Resolved:
    """The settings of one host. `effective` is what extra arguments make of those that have a flag."""

    values: dict[str, Any] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    effective: dict[str, Any] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def resolve(
    specs: Mapping[str, Setting],
    rules: Sequence[Mapping[str, Any]],
    release: Mapping[str, Any],
    raw: Mapping[str, Any],
) -> Resolved:
    """Settings from `raw`, in which what is null or empty counts as not set."""
    specs = narrowed_specs(specs, release)
    result = Resolved()
    for name, spec in specs.items():
        if is_set(raw.get(name)):
            _take(result, spec, raw[name])
    refused = {name for name, value in raw.items() if is_set(value)} - set(result.values)
    result.given = frozenset(result.values)
    _fill_defaults(result, specs, release, refused)
    extra = overrides(result.values.get("extra_args", []), release, specs)
    result.faults += [Fault(text) for text in extra.faults]
    flagged = {
        *release.get("flags", {}).values(),
        *(n for s in release.get("switches", {}).values() for n in s),
    }
    result.effective = {**{name: result.values.get(name) for name in sorted(flagged)}, **extra.values}
    facts = Facts({**result.values, **extra.values}, result.defaults, result.given | frozenset(extra.values))
    _apply_rules(result, rules, facts)
    result.faults += [
        Fault(text) for text in environment_faults(result.values.get("engine_env", {}), release)
    ]
    return result


def narrowed_specs(specs: Mapping[str, Setting], release: Mapping[str, Any]) -> dict[str, Setting]:
    """The specification with the limits (`allowed`) of a release, which builds only from a whole recipe."""
    allowed: dict[str, Any] = {**release.get("allowed", {})}
    if "image_source" in specs and not resolved({}, release):
        allowed["image_source"] = {
            "choices": [one for one in specs["image_source"].choices if one != "build"]
        }
    return {
        name: spec.narrowed(allowed[name], release["release"]) if name in allowed else spec
        for name, spec in specs.items()
    }


def default_of(spec: Setting, release: Mapping[str, Any]) -> Any:
    """A setting's default as written: a value or cases."""
    return release.get("defaults", {}).get(spec.name) if spec.default == BY_RELEASE else spec.default


def same_as(default: Any) -> str | None:
    """The setting whose value a default (`${name}` and nothing else) takes, if it is one of those."""
    found = _SAME.fullmatch(default) if isinstance(default, str) else None
    return found[1] if found else None


def environment_faults(engine_env: Mapping[str, str], release: Mapping[str, Any]) -> list[str]:
    """What `engine_env` may not set because a setting or the launcher does, and unknown tuning."""
    managed = managed_environment(release)
    faults = []
    for name, value in engine_env.items():
        choices = release.get("tuning_choices", {}).get(name)
        if name in managed:
            faults.append(f"engine_env: {name} is managed; use {managed[name]}")
        elif isinstance(choices, Mapping):
            if not (value.isdecimal() and choices["min"] <= int(value) <= choices["max"]):
                faults.append(f"engine_env: {name} is {choices['min']} to {choices['max']}, not {value}")
        elif choices and value not in choices:
            faults.append(f"engine_env: {name} is {show(value)}: it takes {listed(choices)}")
    return faults


def managed_environment(release: Mapping[str, Any]) -> dict[str, str]:
    """Environment variables that are ours: name -> the setting (or the advice) to use instead."""
    managed: dict[str, str] = {}
    for variable, value in release.get("env", {}).items():
        if source := source_setting(value):
            managed[variable] = source
    return {**managed, **release.get("managed_env", {})}


def source_setting(value: Any) -> str | None:
    """The setting that a value of the engine's `env` or a part of its command is made from, if any."""
    if is_cases(value):
        return next((name for case in value for name in case.get("when", {})), None)
    names = Template(str(value)).get_identifiers()
    return names[0] if names else None


def disagreements(
    specs: Mapping[str, Setting], raw_by_host: Mapping[str, Mapping[str, Any]], defaults: Mapping[str, Any]
) -> list[Fault]:
    """Settings that all ranks must share, but in which a host differs from the first (the head)."""
    head, *others = raw_by_host
    faults = []
    for name, spec in specs.items():
        if spec.node_local:
            continue
        value_of = {
            host: _comparable(spec, raw.get(name), defaults.get(name)) for host, raw in raw_by_host.items()
        }
        for host in others:
            if value_of[host] != value_of[head]:
                faults.append(
                    Fault(f"{name} may not differ between ranks ({_who_sets(spec, host, head, raw_by_host)})")
                )
    return faults


def _who_sets(spec: Setting, host: str, head: str, raw_by_host: Mapping[str, Mapping[str, Any]]) -> str:
    def sets(name: str) -> str:
        value = raw_by_host[name].get(spec.name)
        if not is_set(value):
            return f"{name} leaves it at its default"
        if spec.secret:
            return f"{name} sets its own"
        return f"{name} sets {show(value) if isinstance(value, bool) else value}"

    alone = not is_set(raw_by_host[head].get(spec.name))
    return sets(host) if alone else f"{sets(host)}, {sets(head)}"


def _comparable(spec: Setting, value: Any, default: Any) -> Any:
    if not is_set(value):
        return default
    try:
        return convert(spec, value)
    except NotTaken:
        return value


def _take(result: Resolved, spec: Setting, value: Any) -> None:
    try:
        result.values[spec.name] = convert(spec, value)
    except NotTaken as refusal:
        result.faults.append(Fault(str(refusal), node=spec.node_local))


def _fill_defaults(
    result: Resolved, specs: Mapping[str, Setting], release: Mapping[str, Any], refused: set[str]
) -> None:
    """Plain defaults first: the cases of the others ask for them. A refused setting stays unknown."""
    ordered = sorted(specs.values(), key=lambda spec: is_cases(default_of(spec, release)))
    for spec in ordered:
        value = choose(default_of(spec, release), Facts(result.values, result.defaults, result.given))
        value = result.values.get(other) if (other := same_as(value)) else value
        if (other := spec.default_with) and not is_cases(default_of(spec, release)):
            value = value if result.values.get(other) == result.defaults.get(other) else None
        result.defaults[spec.name] = value
        if spec.name not in refused:
            result.values.setdefault(spec.name, value)


def _apply_rules(result: Resolved, rules: Sequence[Mapping[str, Any]], facts: Facts) -> None:
    words = {name: value_text(value) for name, value in facts.values.items()}
    words.update({f"default_{name}": value_text(value) for name, value in facts.defaults.items()})
    for rule in rules:
        if not holds(rule["when"], facts):
            continue
        if "refuse" in rule:
            result.faults.append(Fault(Template(rule["refuse"]).substitute(words)))
        else:
            result.warnings.append(Template(rule["warn"]).substitute(words))
