"""Rank 0's view of rank 1 while serving: every step of every request needs both."""

from __future__ import annotations

import threading
import time

from .channel import Channel
from .switches import Switches

OUT_OF_STEP = "the two ranks are out of step after an error; restart both"


class Peer:
    """One step at a time over the channel. Without rank 1 a step never ends, or all fail for good."""

    def __init__(self, channel: Channel, switches: Switches, hca: str) -> None:
        self._channel = channel
        self._switches = switches
        self._hca = hca
        self._lock = threading.Lock()
        self._sequence = 0
        self._broken = False
        self._dead = False

    def step(self) -> None:
        """A collective of both ranks; RuntimeError (or no return at all) without rank 1."""
        if self._broken:
            raise RuntimeError(OUT_OF_STEP)
        if not self._dead:
            with self._lock:
                self._sequence += 1
                try:
                    self._channel.exchange({"step": self._sequence})
                    return
                except RuntimeError:
                    self._dead = True
        self._without_peer()

    def _without_peer(self) -> None:
        started = time.monotonic()
        while self._switches.get("peer_death") != "fail":
            time.sleep(0.2)
        time.sleep(max(0.0, self._switches.get("roce_wait_s") - (time.monotonic() - started)))
        if self._broken:
            raise RuntimeError(OUT_OF_STEP)
        self._broken = True
        raise RuntimeError(f"RoCE all-gather failed (sequence {self._sequence}, peer 1, hca {self._hca})")
