"""Lines that say what the lab does while it does it."""

from __future__ import annotations

import sys
import time


class Progress:
    """Prints each step with the seconds since the verb began."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def seconds(self) -> float:
        """Seconds since this object was made."""
        return time.monotonic() - self._start

    def say(self, text: str) -> None:
        """Print one line on stderr, so that stdout stays for answers."""
        print(f"[{self.seconds():6.1f} s] {text}", file=sys.stderr, flush=True)
