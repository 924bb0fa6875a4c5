"""What a look at a node tells of its gateway."""

from __future__ import annotations

import time
from typing import Any

from . import certificate
from .keys import KEYS, OWN_KEY, OWN_NAME, keys_conf


def read() -> dict[str, Any]:
    """Whether the key that was made here is the only one, which certificates are there, and the time."""
    return {
        "now": time.time(),
        "own_key": _has_own_key(),
        "own_certificate": certificate.read(certificate.OWN),
        "shown_certificate": certificate.read(certificate.SHOWN),
    }


def _has_own_key() -> bool:
    if not OWN_KEY.is_file() or not KEYS.is_file():
        return False
    return KEYS.read_text() == keys_conf({OWN_NAME: OWN_KEY.read_text().strip()})
