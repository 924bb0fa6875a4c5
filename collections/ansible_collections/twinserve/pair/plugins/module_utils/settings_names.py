"""Names that look like a misspelt setting, and variables of the controller that have no effect."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable

CLOSE = 0.82  # a letter too many, too few or swapped in a short name; `common` is not `comm`


# What `-e` may say to a play beside settings, each yes or no.
PLAY_SWITCHES = frozenset({"again", "restart", "rotate_keys"})
# The same, each one of these words.
PLAY_WORDS = {"state": ("present", "absent")}


def misspelled(names: Iterable[str], known: Collection[str], ignored: Collection[str] = ()) -> list[str]:
    """A message for each name that is close to a setting but is none.

    Names that end in a setting's (`serve_container_name`) are people's own, not misspelt.
    """
    messages = []
    for name in sorted(names):
        if name in known or name in ignored or name.startswith("_") or _ends_in_setting(name, known):
            continue
        if close := difflib.get_close_matches(name.lower(), sorted(known), 1, CLOSE):
            messages.append(f"{name} is not a setting: did you mean {close[0]}?")
    return messages


def ignored_environment(names: Iterable[str], patterns: Collection[str]) -> list[str]:
    """Variables of the controller that a person might expect to count, but which do not."""
    return sorted(name for name in names if any(re.fullmatch(pattern, name) for pattern in patterns))


def _ends_in_setting(name: str, known: Collection[str]) -> bool:
    return any(name.endswith(f"_{setting}") for setting in known)
