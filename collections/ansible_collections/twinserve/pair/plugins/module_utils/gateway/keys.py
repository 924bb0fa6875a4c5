"""API keys as the gateway reads them: a map of nginx from what a client presents to the key's name."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from ..managed_files import ETC

FOLDER = Path(ETC, "gateway")
KEYS = FOLDER / "keys.conf"
OWN_KEY = FOLDER / "api-key"
OWN_NAME = "default"
_LINE = re.compile(r'^"~\^Bearer (?P<key>[A-Za-z0-9_-]+)\$" (?P<name>\w+);$', re.MULTILINE)


def keys_conf(keys: Mapping[str, str]) -> str:
    """The file of that map.  Patterns, since nginx compares plain texts without regard to case.

    Twice each: clients send the key, browsers its name and the key.
    """
    lines = [
        f'"~^Bearer {key}$" {name};\n"~^Basic {_basic(name, key)}$" {name};\n'
        for name, key in sorted(keys.items())
    ]
    return "# Ansible managed\n" + "".join(lines)


def parse_keys(text: str) -> dict[str, str]:
    """Keys by name, from that file."""
    return {found["name"]: found["key"] for found in _LINE.finditer(text)}


def new_key() -> str:
    """A key that nobody guesses: 256 bits."""
    return f"ts-{secrets.token_urlsafe(32)}"


def _basic(name: str, key: str) -> str:
    """What a browser sends, as a pattern."""
    return base64.b64encode(f"{name}:{key}".encode()).decode().replace("+", "[+]")
