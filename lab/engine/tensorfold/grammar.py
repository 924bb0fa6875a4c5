"""The shortest sentence of a grammar in GBNF, the EBNF that constrained decoders take.

Rules are `name ::= alternatives`; items are "text", [class], (group), names, each with an optional ?, * or +.
"""

from __future__ import annotations

import re

from .pattern import example

TOKEN = re.compile(
    r'\s*(?:(#[^\n]*)|([\w-]+)\s*(::=)|("(?:\\.|[^"\\])*")|(\[(?:\\.|[^\]\\])*\])|([\w-]+)|([|()?*+]))'
)
DEPTH = 40


def sentence(text: str) -> str:
    """A sentence of rule `root`; ValueError if the grammar is wrong or never ends."""
    rules = _rules(text)
    if "root" not in rules:
        raise ValueError("the grammar has no rule named root")
    found = _alternatives(rules["root"], rules, 0)
    if found is None:
        raise ValueError("the grammar has no finite sentence")
    return found


def _rules(text: str) -> dict[str, list[str]]:
    rules: dict[str, list[str]] = {}
    name = ""
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"the grammar cannot be read at: {text[at : at + 20].strip()}")
        at = match.end()
        if match[1]:
            continue
        if match[3]:
            name = match[2]
            rules[name] = []
        elif name:
            rules[name].append(match[0].strip())
        else:
            raise ValueError("the grammar must begin with a rule")
    return rules


def _alternatives(tokens: list[str], rules: dict[str, list[str]], depth: int) -> str | None:
    """The shortest of the alternatives that end."""
    found = [_sequence(part, rules, depth) for part in _split(tokens)]
    ended = [text for text in found if text is not None]
    return min(ended, key=len) if ended else None


def _split(tokens: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    level = 0
    for token in tokens:
        level += (token == "(") - (token == ")")
        if token == "|" and level == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _sequence(tokens: list[str], rules: dict[str, list[str]], depth: int) -> str | None:
    out = ""
    at = 0
    while at < len(tokens):
        end = _group_end(tokens, at) if tokens[at] == "(" else at + 1
        repeat = tokens[end] if end < len(tokens) and tokens[end] in "?*+" else ""
        if repeat not in ("?", "*"):
            item = _item(tokens[at:end], rules, depth)
            if item is None:
                return None
            out += item
        at = end + bool(repeat)
    return out


def _group_end(tokens: list[str], at: int) -> int:
    level = 0
    for end in range(at, len(tokens)):
        level += (tokens[end] == "(") - (tokens[end] == ")")
        if level == 0:
            return end + 1
    raise ValueError("the grammar has an open group")


def _item(tokens: list[str], rules: dict[str, list[str]], depth: int) -> str | None:
    first = tokens[0]
    if depth > DEPTH:
        return None
    if first == "(":
        return _alternatives(tokens[1:-1], rules, depth + 1)
    if first.startswith('"'):
        return first[1:-1].encode().decode("unicode_escape")
    if first.startswith("["):
        return example(first)
    if first not in rules:
        raise ValueError(f"the grammar has no rule named {first}")
    return _alternatives(rules[first], rules, depth + 1)
