"""The decoder of rank 0: lanes, prompt reuse, pace and counters. What is said comes from elsewhere."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .lanes import Lanes
from .peer import Peer
from .prefix import KeptPrompts
from .reply import Call, Delta, Job, Stats
from .switches import Switches
from .tokens import encode, pieces
from .wording import call_text

STEP_TOKENS = 16
DRAFT_WIDTH = 7


@dataclass
class Totals:
    """Counters since the start; a running reply's tokens are in `completion_tokens`."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    latencies: list[float] = field(default_factory=list)
    first_tokens: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Shape:
    """What the start decided: model id, window and pool in tokens, lanes, budget, media and reasoning."""

    name: str
    window: int
    pool: int
    parallel: int
    max_tokens: int
    thinking: bool
    effort: str
    vision: bool
    vision_urls: bool
    slots: int
    multi_prefill: bool


class Engine:
    """Generates replies with the peer; safe to use from many threads."""

    def __init__(self, shape: Shape, peer: Peer, switches: Switches) -> None:
        self.shape = shape
        self.switches = switches
        self.kept = KeptPrompts(shape.slots)
        self.lanes = Lanes(shape.parallel)
        self.totals = Totals()
        self.answers: dict[str, dict[str, Any]] = {}
        self._peer = peer
        self._lock = threading.Lock()
        self._alone = threading.Lock()

    def generate(self, job: Job, stats: Stats) -> Iterator[Delta]:
        """Yield the reply piece by piece and fill `stats`; waits for a lane first."""
        asked = time.monotonic()
        alone = self._alone if self.switches.get("one_at_a_time") else contextlib.nullcontext()
        with alone, self.lanes.enter(wait=not self.switches.get("nobody_waits")) as lane:
            if self.switches.get("hang_completions"):
                threading.Event().wait()
            if self.switches.get("fail_completions"):
                raise RuntimeError("CUDA error: an illegal memory access was encountered")
            self._prefill(job, stats)
            lane.decode()
            stats.first_token_s = time.monotonic() - asked
            yield from self._decode(job, stats)
        self._account(stats, time.monotonic() - asked)

    def _prefill(self, job: Job, stats: Stats) -> None:
        started = time.monotonic()
        stats.prompt_tokens = len(job.prompt)
        stats.cached = self.kept.cached(job.prompt)
        self._peer.step()
        time.sleep((stats.prompt_tokens - stats.cached) / self.switches.get("prefill_tokens_per_s"))
        if not self.switches.get("forget_prompts"):
            self.kept.keep(job.prompt)
        stats.prefill_s = time.monotonic() - started

    def _decode(self, job: Job, stats: Stats) -> Iterator[Delta]:
        started = time.monotonic()
        stats.finish = "tool_calls" if job.reply.calls else "stop"
        for delta, ids in _planned(job):
            room = job.budget - len(stats.ids)
            if room <= 0:
                stats.finish = "length"
                break
            self._spend(ids[:room], stats)
            if delta.kind == "reasoning":
                stats.reasoning_tokens += min(room, len(ids))
            yield delta
        stats.decode_s = time.monotonic() - started

    def _spend(self, ids: list[int], stats: Stats) -> None:
        """Tokens take time, need the peer, and are counted while the reply still runs."""
        before = len(stats.ids)
        stats.ids.extend(ids)
        if before // STEP_TOKENS != len(stats.ids) // STEP_TOKENS:
            self._peer.step()
        time.sleep(len(ids) / self.switches.get("decode_tokens_per_s"))
        stats.rounds += 1
        stats.drafted += DRAFT_WIDTH
        stats.accepted += min(DRAFT_WIDTH, len(ids) - 1)
        with self._lock:
            self.totals.completion_tokens += len(ids)

    def _account(self, stats: Stats, seconds: float) -> None:
        with self._lock:
            totals = self.totals
            totals.requests += 1
            totals.prompt_tokens += stats.prompt_tokens
            totals.cached_tokens += stats.cached
            totals.prefill_seconds += stats.prefill_s
            totals.decode_seconds += stats.decode_s
            totals.rounds += stats.rounds
            totals.drafted += stats.drafted
            totals.accepted += stats.accepted
            totals.latencies.append(seconds)
            totals.first_tokens.append(stats.first_token_s)


def _planned(job: Job) -> Iterator[tuple[Delta, list[int]]]:
    """The reply as deltas with their ids, up to the first stop text."""
    for word, ids in pieces(job.reply.reasoning):
        yield Delta("reasoning", word), ids
    for word, ids in pieces(_until_stop(job.reply.content, job.stop)):
        yield Delta("content", word), ids
    for call in job.reply.calls:
        yield Delta("call", call=call), _call_ids(call)


def _call_ids(call: Call) -> list[int]:
    return encode(call_text(call))


def _until_stop(text: str, stop: tuple[str, ...]) -> str:
    ends = [text.find(mark) for mark in stop if mark and mark in text]
    return text[: min(ends)] if ends else text
