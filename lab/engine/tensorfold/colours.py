"""The pictures and clips that the simulated model knows: by their content, for it decodes none."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

# The samples of the API's checks, which are all red.
RED = frozenset(
    {
        "80aab285c141d355",  # jpeg
        "5ca7ed502fe6beeb",  # png
        "6443ff91d2c709a4",  # webp
        "158c7feca6ef20f9",  # mp4
        "a5b56d1931a49701",  # webm
        "a95c520b04d8d77c",  # mov
        "fba58ae0809f7d68",  # mkv
    }
)


def colour(blobs: Iterable[bytes]) -> str | None:
    """The colour that all of them have; None when one of them is not known, or there are none."""
    known = [hashlib.sha256(blob).hexdigest()[:16] in RED for blob in blobs]
    return "red" if known and all(known) else None
