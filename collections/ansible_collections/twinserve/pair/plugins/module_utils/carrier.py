"""Setting ports up, and giving them time to find the other end of their cable."""

from __future__ import annotations

import time
from collections.abc import Sequence

from .netdevs import read_links
from .shell import run


def bring_up(netdevs: Sequence[str], nothing: float = 10.0, more: float = 2.0) -> list[str]:
    """Set ports up and give them time to find their peers; returns those that have carrier afterwards.

    Waits until all have it, `nothing` seconds while none has, and `more` seconds after the last that came:
    the second port of a card has no cable and never gets it.
    """
    for netdev in netdevs:
        run(["ip", "link", "set", netdev, "up"])
    limit = time.monotonic() + nothing
    live: list[str] = []
    while time.monotonic() < limit and len(live) < len(netdevs):
        time.sleep(0.1)
        links = read_links()
        now = [netdev for netdev in netdevs if links[netdev]["carrier"]]
        if len(now) > len(live):
            limit, live = time.monotonic() + more, now
    return live
