"""Take secrets out of a text that leaves the node: by value where it is known, else by how they look."""

from __future__ import annotations

import re
from collections.abc import Iterable

MARK = "[removed]"
# Shorter ones would tear ordinary words apart.
_SHORTEST = 6
_PEM = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_WORD = r"(?:[A-Za-z0-9]+[_-])*(?:token|secret|password|passwd|api[_-]?key|credentials?)"
_PATTERNS = (
    # NAME=value, NAME: value, "NAME": "value"; a number is a setting (max_tokens), not a secret.
    re.compile(rf"(?i)(?<![A-Za-z0-9])({_WORD}[\"']?\s*[=:]\s*[\"']?)(?!\d+\b)([^\s\"',;}}\]]+)"),
    # --api-key VALUE, and the same as two items of a list in JSON.
    re.compile(rf"(?i)(--{_WORD}[\"']?,?\s+[\"']?)(?!-)([^\s\"',\]]+)"),
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]{8,})"),
    # A proxy or a mirror with a login in its address.
    re.compile(r"([a-z][a-z0-9+.-]*://[^/\s:@]*:)([^/\s@]+)(?=@)"),
    re.compile(r"()\b((?:hf|sk|ghp|gho|ghs|github_pat|nvapi)[_-][A-Za-z0-9_-]{16,})"),
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without `secrets`, and without what looks like one."""
    for secret in sorted({one for one in secrets if len(one) >= _SHORTEST}, key=len, reverse=True):
        text = text.replace(secret, MARK)
    text = _PEM.sub(rf"\1 {MARK} \2", text)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\g<1>{MARK}", text)
    return text
