"""Several requests at once, and a prompt that comes again."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import Future, ThreadPoolExecutor

from .client import CHAT, Answer, Api
from .found import NotPromised
from .observed import lately, metric, running, window
from .promise import Promise
from .reading import need, said
from .registry import check

LONG_REPLY = "Count from 1 to 200 in words, one number a line, without anything else."
SENTENCE = "Rails carry tokens between the two machines. "
REPEATS = 1500  # of the sentence: about 13,000 tokens
SHARE = 16  # of a smaller window, in tokens a sentence: it takes about nine
BLOCK = 256  # tokens of which nothing is known when one is new, at most
GLANCE = 0.02
LONG = 256  # tokens of an answer
TOGETHER = 5.0  # seconds an answer shall take, to be seen beside the others
MOST = 16


def _together(api: Api, promise: Promise, count: int) -> tuple[list[Answer], int]:
    """The answers to so many different requests at once, and the most that were seen running."""
    reply = _reply(api)
    with ThreadPoolExecutor(count) as pool:
        asked = [
            pool.submit(api.chat, f"{LONG_REPLY} ({secrets.token_hex(4)})", reply=reply) for _ in range(count)
        ]
        most = 0
        while not all(map(Future.done, asked)):
            most = max(most, running(api, promise))
            time.sleep(GLANCE)
        return [one.result() for one in asked], most


def _reply(api: Api) -> int:
    """Tokens of an answer that takes TOGETHER at the pace of a lone one: a slow engine need not say more."""
    alone = api.chat(LONG_REPLY, reply=16)
    pace = alone.good()["usage"]["completion_tokens"] / alone.seconds
    return max(16, min(LONG, int(pace * TOGETHER)))


@check
def parallel_requests(api: Api, promise: Promise) -> None:
    """As many requests as `parallel` run at the same time, and all are answered."""
    answers, most = _together(api, promise, promise.parallel)
    for answer in answers:
        said(answer)
    need(most >= promise.parallel, f"{promise.parallel} requests at once, and never more than {most} ran")


@check
def one_more_waits(api: Api, promise: Promise) -> None:
    """A request more than can run waits, and is then served."""
    answers, most = _together(api, promise, promise.parallel + 1)
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
        asked = [pool.submit(api.chat, f"{LONG_REPLY} ({number})", reply=LONG) for number in range(count)]
        while _placed(api) < count:
            need(not any(map(Future.done, asked)), f"{count} requests at once do not fill the server")
            time.sleep(GLANCE)
        answer = api.ask(CHAT, api.chat_body("Reply with OK.", reply=16, stream=True))
        for one in asked:
            said(one.result())
    answer.need(promise.full_status)
    headers = {name.lower() for name in answer.headers}
    need(answer.status != 429 or "retry-after" in headers, "429 came without Retry-After")


def _placed(api: Api) -> int:
    found = api.ask("/health").good()
    return int(found["requests_running"]) + int(found.get("streams", {}).get("filling", 0))


def _cached(api: Api, promise: Promise) -> float:
    """Tokens of prompts that were known, so far: of others' requests too."""
    return metric(api, [promise.cached_metric]) if promise.cached_metric else 0


@check
def prompt_reuse(api: Api, promise: Promise) -> None:
    """A long prompt that comes again is not computed again: it is known, and answered much faster."""
    if not promise.prompts_kept:
        raise NotPromised("with these settings prompts are not kept (prompts_kept)")
    repeats = min(REPEATS, window(api, promise) // SHARE)
    prompt = f"{secrets.token_hex(8)} " + SENTENCE * repeats
    first = api.chat(f"{prompt}\nReply with OK.", max_tokens=1)
    first.need(200)
    before = _cached(api, promise)
    second = api.chat(f"{prompt}\nReply with OK.", max_tokens=1)
    usage = second.good()["usage"]
    wanted = 0.9 * usage["prompt_tokens"] - BLOCK
    if promise.cached_metric is None:
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    else:
        cached = lately(lambda: _cached(api, promise), before + wanted) - before
    need(
        cached > wanted,
        f"the same prompt again: {cached:.0f} of its {usage['prompt_tokens']} tokens were known",
    )
    need(
        second.seconds < first.seconds / 2,
        f"the same prompt took {first.seconds:.2f} s, and {second.seconds:.2f} s when it came again",
    )
