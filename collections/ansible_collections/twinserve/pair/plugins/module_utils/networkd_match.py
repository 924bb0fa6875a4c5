"""Which .network file systemd-networkd takes for a port: the first that matches, by file name."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping


def sections(text: str) -> dict[str, dict[str, list[str]]]:
    """Keys with all their values by section, of one file in systemd's form."""
    found: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for line in (raw.strip() for raw in text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = found.setdefault(line[1:-1], {})
        elif "=" in line and not line.startswith(("#", ";")):
            key, _, value = line.partition("=")
            section.setdefault(key.strip(), []).append(value.strip())
    return found


def winner(files: Mapping[str, str], netdev: str, mac: str) -> str | None:
    """Name of the file, out of `files` (content by name), that configures the port; None when none does."""
    return next((name for name in sorted(files) if matches(files[name], netdev, mac)), None)


def matches(text: str, netdev: str, mac: str) -> bool:
    """Whether the file's [Match] takes this Ethernet port. What cannot be judged from here does not match."""
    match = sections(text).get("Match", {})
    tests = {
        "Name": lambda words: _named(words, netdev),
        "OriginalName": lambda words: _named(words, netdev),
        "MACAddress": lambda words: mac.lower() in [word.lower() for word in words],
        "PermanentMACAddress": lambda words: mac.lower() in [word.lower() for word in words],
        "Type": lambda words: "ether" in words,
    }
    return bool(match) and all(
        key in tests and tests[key](" ".join(values).split()) for key, values in match.items()
    )


def _named(words: Iterable[str], netdev: str) -> bool:
    words = list(words)
    if words and words[0].startswith("!"):
        return not any(fnmatch.fnmatchcase(netdev, word.lstrip("!")) for word in words)
    return any(fnmatch.fnmatchcase(netdev, word) for word in words)
