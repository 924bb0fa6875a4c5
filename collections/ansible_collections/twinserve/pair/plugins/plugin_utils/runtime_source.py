"""The files that become the runtime: those that the collection's own modules import."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "module_utils"
