"""The files that become the runtime: those that the collection's own modules import."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.twinserve.pair.plugins.module_utils.runtime_archive import Files, read


def runtime_files() -> Files:
    """Read them, once: version and archive of one run are of the same content."""
    return read(Path(__file__).resolve().parent.parent / "module_utils")
