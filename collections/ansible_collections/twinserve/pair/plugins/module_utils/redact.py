"""Take secrets out of a text that leaves the node: by value where it is known, else by how they look."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

MARK = "[removed]"
# Shorter ones would tear ordinary words apart.
_SHORTEST = 6
_PEM = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
# Keys that are public, and a pass that is a step of the engine (--prefill-pass), are none.
_WORD = (
    r"(?:[A-Za-z0-9]+[_-]){0,8}(?:(?P<counted>token)|secret|password|passwd|passphrase|psk|credentials?"
    r"|(?:api|access|secret|private|auth)[_-]?key|(?<=[_-])(?<!public[_-])(?<!host[_-])key"
    r"|(?<=[_-])(?<!prefill[_-])pass|(?<=[_-])pwd)"
)
# Whole between quotes, which may be escaped themselves, and to the end of the line where they are not closed.
# Without, to the next blank or to a quote that ends something around it.
_VALUE = (
    r"(?:(?P<quote>[\"'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\\n])*)(?P=quote)"
    r"|(?P<escaped>\\+[\"'])(?P<inner>.*?)(?P=escaped)"
    r"|(?P<opened>[\"'])[^\n]*"
    r"|(?P<bare>{first}[^\s\"'\\]+(?:(?<![,;:}}\])])[\"'\\](?=[^\s\"',;:}}\])\\])[^\s\"'\\]*)*))"
)
_TRAILING = ",;}])"
# A count of tokens is a setting or a measure.
_COUNT = re.compile(r"\d{1,7}(?:\.\d+)?")
_NAMED = (
    # NAME=value, NAME: value, "NAME": "value".
    re.compile(rf"(?i)(?P<name>(?<![A-Za-z0-9]){_WORD}(?:\\*[\"'])?\s*[=:]\s*){_VALUE.format(first='')}"),
    # --api-key VALUE, and the same as two items of a list in JSON.
    re.compile(rf"(?i)(?P<name>--{_WORD}(?:\\*[\"'])?,?\s+){_VALUE.format(first='(?!-)')}"),
)
_PATTERNS = (
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]{8,})"),
    # A proxy or a mirror with a login in its address; an @ in a password is often left as it is.
    re.compile(r"(?i)(\b[a-z][a-z0-9+.-]{0,20}://[^/\s:@\"']*:)([^/\s\"']+)(?=@)"),
    re.compile(r"(?i)(\bhttps?://)([^/\s:@\"']+)(?=@)"),
    re.compile(r"()\b((?:hf|sk|ghp|gho|ghs|github_pat|nvapi)[_-][A-Za-z0-9_-]{16,})"),
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without `secrets`, and without what looks like one."""
    for secret in sorted({one for one in secrets if len(one) >= _SHORTEST}, key=len, reverse=True):
        text = text.replace(secret, MARK)
    text = _PEM.sub(rf"\1 {MARK} \2", text)
    for pattern in _NAMED:
        text = pattern.sub(_without_value, text)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\g<1>{MARK}", text)
    return text


def passwords(addresses: Iterable[str]) -> list[str]:
    """The secrets of logins in addresses, as they stand there and as they are meant."""
    logins = [one.partition("://")[2].partition("/")[0].rpartition("@")[0] for one in addresses]
    found = [login.partition(":")[2] or login for login in logins if login]
    return list(dict.fromkeys([*found, *map(unquote, found)]))


def _without_value(found: re.Match[str]) -> str:
    quote = found["quote"] or found["escaped"] or ""
    bare = found["bare"] or ""
    value = bare.rstrip(_TRAILING)
    if found["counted"] and _COUNT.fullmatch(value or found["quoted"] or ""):
        return found[0]
    if found["opened"]:
        return f"{found['name']}{found['opened']}{MARK}"
    return f"{found['name']}{quote}{MARK}{quote}{bare[len(value) :]}"
