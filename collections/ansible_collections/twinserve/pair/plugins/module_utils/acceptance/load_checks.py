"""Several requests at once, and a prompt that comes again."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import Future, ThreadPoolExecutor

from .client import CHAT, Answer, Api
from .found import NotPromised
from .promise import Promise
from .reading import need, said
from .registry import check

LONG_REPLY = "Count from 1 to 200 in words, one number a line, without anything else."
REPEATS = 1500  # of a sentence: about 13,000 tokens
GLANCE = 0.02
MOST = 16


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
    answers, most = _together(api, promise.parallel + 1)
    for answer in answers:
        said(answer)
    need(most >= promise.parallel, f"with parallel {promise.parallel} never more than {most} ran at once")
    need(
        most == promise.parallel, f"nothing had to wait: {most} ran at once, with parallel {promise.parallel}"
    )


@check
def full_server(api: Api, promise: Promise) -> None:
    """Where the queue is limited, a stream that finds no place is refused before it begins."""
    if promise.max_queued is None:
        raise NotPromised("no limit is set to the requests that wait")
    count = promise.parallel + promise.max_queued
    if count > MOST:
        raise NotPromised(f"it takes {count} requests to fill the server")
    with ThreadPoolExecutor(count) as pool:
        asked = [pool.submit(api.chat, f"{LONG_REPLY} ({number})", max_tokens=256) for number in range(count)]
        while _placed(api) < count:
            need(not any(map(Future.done, asked)), f"{count} requests at once do not fill the server")
            time.sleep(GLANCE)
        answer = api.ask(CHAT, api.chat_body("Reply with OK.", max_tokens=16, stream=True))
        for one in asked:
            said(one.result())
    answer.need(promise.full_status)
    headers = {name.lower() for name in answer.headers}
    need(answer.status != 429 or "retry-after" in headers, "429 came without Retry-After")


def _placed(api: Api) -> int:
    found = api.ask("/health").good()
    return int(found["requests_running"]) + int(found.get("streams", {}).get("filling", 0))


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
