"""Writes files that others read meanwhile."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(file: Path, text: str) -> None:
    """Replace a file's text; whoever reads it meanwhile has the old one or the new one, never half of it."""
    new = file.with_name(f".{file.name}.{os.getpid()}.new")
    new.write_text(text)
    new.rename(file)
