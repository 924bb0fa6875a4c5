"""Reading small kernel files (sysfs, procfs) below a root that tests may replace."""

from __future__ import annotations

import errno
import os
from pathlib import Path

# Attributes without a value (an empty GID slot, the speed of a port that is down) fail to read with these.
_NO_VALUE = frozenset({errno.EINVAL, errno.ENOENT, errno.ENODEV, errno.ENOTDIR, errno.EOPNOTSUPP})


def read_attr(path: Path | str) -> str | None:
    """Return the stripped text of one kernel attribute, or None where it has no value.

    Raises OSError for anything else (no permission, I/O error).
    """
    try:
        # One open, one read: a GID table has hundreds of these files.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(handle, 65536).decode("utf-8", "replace").strip()
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno in _NO_VALUE:
            return None
        raise


def read_int(path: Path | str) -> int | None:
    """Return a kernel attribute as a number, or None where it has none."""
    text = read_attr(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def names(path: Path) -> list[str]:
    """Return the sorted entries of a directory; an absent one has none."""
    try:
        return sorted(entry.name for entry in path.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def link_name(path: Path) -> str | None:
    """Return the last part of what a link points to, without following it; None when it is no link."""
    try:
        return path.readlink().name
    except OSError as error:
        if error.errno in _NO_VALUE:
            return None
        raise
