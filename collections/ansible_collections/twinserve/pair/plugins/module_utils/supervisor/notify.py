"""sd_notify: telling systemd that we are up, what we do, and that stopping takes longer."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


def notify(text: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Send one message (lines of `KEY=value`). Returns False when systemd did not start us.

    Raises OSError when the socket is there but cannot be written.
    """
    address = environ.get("NOTIFY_SOCKET")
    if not address:
        return False
    # A leading @ stands for the abstract namespace.
    target = "\0" + address[1:] if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.sendto(text.encode(), target)
    return True


def one_line(text: str, limit: int = 400) -> str:
    """Return text that fits into one status line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[:limit]}..."
