"""Several requests at once, and a prompt that comes again."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import Future, ThreadPoolExecutor

from .client import Answer, Api
from .found import NotPromised
from .promise import Promise
from .reading import need, said
from .registry import check

LONG_REPLY = "Count from 1 to 200 in words, one number a line, without anything else."
REPEATS = 1500  # of a sentence: about 13,000 tokens
GLANCE = 0.02


def _together(api: Api, count: int) -> tuple[list[Answer], int]:
    """The answers to so many different requests at once, and the most that /health saw running."""
    with ThreadPoolExecutor(count) as pool:
        asked = [
            pool.submit(api.chat, f"{LONG_REPLY} ({secrets.token_hex(4)})", max_tokens=256)
            for _ in range(count)
        ]
        most = 0
        while not all(map(Future.done, asked)):
            most = max(most, int(api.ask("/health").good()["requests_running"]))
            time.sleep(GLANCE)
        return [one.result() for one in asked], most


@check
def parallel_requests(api: Api, promise: Promise) -> None:
    """As many requests as `parallel` run at the same time, and all are answered."""
    answers, most = _together(api, promise.parallel)
    for answer in answers:
        said(answer)
    need(most >= promise.parallel, f"{promise.parallel} requests at once, and never more than {most} ran")


@check
def one_more_waits(api: Api, promise: Promise) -> None:
    """A request more than can run waits, and is then served."""
    answers, _ = _together(api, promise.parallel + 1)
    for answer in answers:
        said(answer)


@check
def prompt_reuse(api: Api, promise: Promise) -> None:
    """A long prompt that comes again is not computed again: it is known, and answered much faster."""
    if promise.parallel < 2:
        raise NotPromised("prompts are kept with parallel above 1 only")
    prompt = f"{secrets.token_hex(8)} " + "Rails carry tokens between the two machines. " * REPEATS
    first, second = (api.chat(f"{prompt}\nReply with OK.", max_tokens=1) for _ in range(2))
    usage = second.good()["usage"]
    cached = usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)
    first.need(200)
    need(
        cached > 0.9 * usage["prompt_tokens"],
        f"the same prompt again: {cached} of its {usage['prompt_tokens']} tokens were known",
    )
    need(
        second.seconds < first.seconds / 2,
        f"the same prompt took {first.seconds:.2f} s, and {second.seconds:.2f} s when it came again",
    )
