"""What `ip` prints of ports, and time that passes only while somebody sleeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def shown(**ports: tuple[str, int, int]) -> str:
    """What `ip -j addr` prints: address, prefix length and MTU by port; an empty address is none."""
    links: list[dict[str, Any]] = []
    for name, (address, length, mtu) in ports.items():
        info = [{"family": "inet", "local": address, "prefixlen": length}] if address else []
        links.append({"ifname": name, "flags": ["UP", "LOWER_UP"], "mtu": mtu, "addr_info": info})
    return json.dumps(links)


class Clock:
    """`at` says what happens when."""

    def __init__(self) -> None:
        self.now = 0.0
        self.at: dict[float, Callable[[], None]] = {}

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for moment in [one for one in self.at if one <= self.now]:
            self.at.pop(moment)()
