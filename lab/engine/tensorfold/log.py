"""Log lines: `[tensorfold] <text>` on stdout, one write each, flushed at once because people tail them."""

from __future__ import annotations

import sys


def log(text: str) -> None:
    """Print one line of the engine's own log."""
    sys.stdout.write(f"[tensorfold] {text}\n")
    sys.stdout.flush()
