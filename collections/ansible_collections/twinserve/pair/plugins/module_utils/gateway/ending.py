"""What is told of a certificate that clients refuse, or soon will: pure, from the probe of the head."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ..managed_files import UNITS

_SOON = 30 * 86400
# Of what is good for less than 120 days: certbot renews 90 days in their last third, and that is well.
_LAST_PART = 1 / 4
_WATCHER = f"{UNITS}/twinserve-gateway-certificate"


def date(shown: Mapping[str, Any]) -> str:
    """The day on which a certificate ends."""
    return datetime.fromtimestamp(shown["ends"], UTC).date().isoformat()


def ended(head: Mapping[str, Any], name: str) -> str:
    """That the certificate of the head `name` has ended and what to do; empty while it has not."""
    return _told(head, name, over=True)


def ends_soon(head: Mapping[str, Any], name: str) -> str:
    """That it ends within 30 days, and what to do; empty while it does not."""
    return _told(head, name, over=False)


def _told(head: Mapping[str, Any], name: str, over: bool) -> str:
    gateway = head.get("gateway") or {}
    if not (shown := gateway.get("shown_certificate")):
        return ""
    left = shown["ends"] - gateway["now"]
    if (left <= 0) is not over or left > min(_SOON, (shown["ends"] - shown["begins"]) * _LAST_PART):
        return ""
    word = "ended" if over else "ends"
    return f"the gateway's certificate {word} on {date(shown)}: {_advice(head, name)}"


def _advice(head: Mapping[str, Any], name: str) -> str:
    """By what looks after it."""
    files = head.get("files") or {}
    if f"{_WATCHER}.timer" in files:
        return f"journalctl -u twinserve-gateway-certificate on {name} says why it was not renewed"
    if f"{_WATCHER}.path" in files:
        return f"put a newer one in the place of gateway_certificate on {name}, and the gateway takes it"
    return "run serve.yml, which renews it"
