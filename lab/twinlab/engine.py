"""The simulated engine: its switches on each host, and its image in the lab's registry."""

from __future__ import annotations

import json
from collections.abc import Iterable

from .errors import LabError
from .files import write_whole
from .layout import Host


def parse_switches(words: Iterable[str]) -> dict[str, object]:
    """KEY=VALUE words; a value that is JSON is taken as such, any other as text.  Raises LabError."""
    switches: dict[str, object] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not key or not equals:
            raise LabError(f"{word}: write KEY=VALUE")
        try:
            switches[key] = json.loads(text)
        except ValueError:
            switches[key] = text
    return switches


def read_switches(host: Host) -> dict[str, object]:
    """What is set on a host."""
    file = host.engine / "switches.json"
    try:
        content: dict[str, object] = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    return content


def write_switches(host: Host, switches: dict[str, object]) -> None:
    """Set them; the engine reads them while it runs, and never sees half a file."""
    host.engine.mkdir(parents=True, exist_ok=True)
    write_whole(host.engine / "switches.json", json.dumps(switches, indent=2, sort_keys=True) + "\n")
