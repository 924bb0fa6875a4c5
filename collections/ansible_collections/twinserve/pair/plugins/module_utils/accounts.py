"""Accounts of a node."""

from __future__ import annotations

import pwd


def exists(name: str) -> bool:
    """Whether there is such a user."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
