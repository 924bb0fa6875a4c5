"""Download one pinned snapshot: watched on the node, so that no controller is needed until the end.

The client says success for downloads that are incomplete, and waits for ever on some locks (M-05, M-10). So
its bytes are watched, and what it brought is compared with the hub's list; either is tried twice. It also
gives up when the hub is away for some seconds; we wait as long as for a byte.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from .. import hf_blobs, hf_cache, progress
from . import leftovers
from .client import Client
from .errors import ClientFailed, HubAway, Stalled, WeightsError
from .locks import waiting_on

_TRIES = 2


@dataclass(frozen=True)
class Order:
    """What to bring, and how. `stall` seconds without a byte end a try.

    `offline`: the hub does not answer, what is here must do. `again`: ask the client also when all is here.
    """

    home: str
    repo: str
    revision: str
    argv: Sequence[str]
    user: str | None = None
    stall: float = 300.0
    offline: bool = False
    again: bool = False
    pause: float = 2.0

    @property
    def place(self) -> tuple[str, str, str]:
        """Where the snapshot is."""
        return self.home, self.repo, self.revision


def fetch(order: Order) -> str:
    """Bring it; the sentence says how. Raises WeightsError."""
    lacking, _ = hf_cache.lacking(*order.place)
    if not lacking and (order.offline or (not order.again and hf_cache.hub_list(*order.place))):
        return f"{order.repo}@{order.revision[:8]} is here already"
    if order.offline:
        name = f"{order.repo}@{order.revision[:8]}"
        raise WeightsError(f"Hugging Face not reachable, and {name} lacks {len(lacking)} files here")
    tries, watch = 0, _Watch(order)
    while True:
        for removed in leftovers.remove(*order.place):
            say(removed)
        try:
            watch.run()
        except HubAway as away:
            if watch.quiet >= order.stall:
                raise
            say(f"{away}; trying again")
            time.sleep(order.pause * 5)
            continue
        except Stalled as stall:
            tries += 1
            if tries == _TRIES:
                raise
            say(f"{stall}; trying once more")
            continue
        lacking, count = hf_cache.lacking(*order.place)
        if not lacking:
            return f"{order.repo}@{order.revision[:8]}: {count} files"
        tries += 1
        if tries == _TRIES:
            raise WeightsError(f"download incomplete: {len(lacking)} of {count} files ({_some(lacking)})")
        say(f"the client says success, and {len(lacking)} of {count} files are missing; trying once more")


@dataclass
class _Watch:
    """Runs the client and looks at what arrives; `moved` is when the last byte did, in whatever run."""

    order: Order
    moved: float = field(default_factory=time.monotonic)

    @property
    def quiet(self) -> float:
        """Seconds without a byte."""
        return time.monotonic() - self.moved

    def run(self) -> None:
        """Run it once. Raises ClientFailed, Stalled, or WeightsError when trying again is of no use."""
        order, client = self.order, Client(self.order.argv, self.order.user)
        try:
            meter, (seen, _), began = progress.Meter(), _bytes(order), time.monotonic()
            while client.code is None:
                time.sleep(order.pause)
                now, (here, total) = time.monotonic(), _bytes(order)
                meter.add(now, here)
                progress.note(meter.numbers(total, time.time()))
                if here != seen:
                    seen, self.moved = here, now
                elif now - max(began, self.moved) >= order.stall:
                    raise _stalled(order, client)
            if client.code:
                raise (HubAway if client.hub_is_away else ClientFailed)(client.code, client.reason)
        finally:
            client.stop()


def _bytes(order: Order) -> tuple[int, int | None]:
    """Bytes here and in all; before the client has the hub's list, all that its repository has counts."""
    wanted = hf_blobs.by_etag(hf_cache.hub_list(*order.place))
    blobs = hf_blobs.on_disk(hf_cache.repo_folder(order.home, order.repo))
    if not wanted:
        return sum(blobs.values()), None
    return hf_blobs.arrived(wanted, blobs), sum(wanted.values())


def _stalled(order: Order, client: Client) -> WeightsError:
    """Why nothing moves: a lock that nobody holds does not go away by waiting; a held one is left alone."""
    text = f"no progress for {order.stall:g} s"
    lock = waiting_on(order.home, order.repo, leftovers.not_whole(*order.place), client.processes)
    if lock is None:
        return Stalled(text)
    if lock.holder is None:
        return WeightsError(f"{text}, waiting on {lock.path}; no process holds it: remove it and run again")
    who = f"process {lock.holder}" if lock.holder else "another process"
    return WeightsError(f"{text}, waiting on {lock.path}, which {who} holds: let it end, and run again")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def say(text: str) -> None:
    """A line for the job's log, at once."""
    print(text, flush=True)
