"""Pictures and video: what is taken, and what is too much."""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from .client import CHAT, Answer, Api, netloc
from .found import NotPromised
from .promise import Promise
from .reading import need, prompt_tokens, refusal, said
from .registry import check, checks
from .samples import COLOUR, IMAGES, LONG, VIDEOS, big_png

QUESTION = "What colour is this? Answer in one word."
GLANCE = 0.05
MB = 1_000_000
MIB = 2**20
MARGIN = 300  # tokens of the words, and of what a template writes around each picture
SEVERAL = 7  # pictures of almost 10 MB: more than 64 MB
BIG = 4096  # pixels of a side: far more than image_tokens allows


def _part(kind: str, sample: tuple[str, str]) -> dict[str, Any]:
    mime, data = sample
    return {"type": f"{kind}_url", f"{kind}_url": {"url": f"data:{mime};base64,{data}"}}


def _show(api: Api, *parts: dict[str, Any]) -> Answer:
    return api.chat([*parts, {"type": "text", "text": QUESTION}], reply=32)


def _need_vision(promise: Promise, images: int = 0, videos: int = 0) -> None:
    """Skip what needs media where there are none, or where a request may have fewer than the check sends."""
    if not promise.vision:
        raise NotPromised("images and video are off (vision: false)")
    for name, sent, most in (
        ("max_images", images, promise.max_images),
        ("max_videos", videos, promise.max_videos),
    ):
        if sent > most:
            raise NotPromised(f"{name} is {most}, and this check sends {sent}")


def _seen(api: Api, answer: Answer) -> int:
    """Tokens that the media take of the prompt; none is wrong: a picture that is dropped is answered too."""
    said(answer)
    more = prompt_tokens(answer) - prompt_tokens(api.chat(QUESTION, reply=32))
    need(more > 0, "the request was answered without a look at its media: they took no tokens of the prompt")
    return more


def _recognised(api: Api, part: dict[str, Any]) -> None:
    """The media are in the prompt, and what the model says of them is true."""
    answer = _show(api, part)
    _seen(api, answer)
    text = said(answer)
    told = re.search(rf"\b{COLOUR}\b", text, re.IGNORECASE)
    need(told is not None, f"what is {COLOUR} was called {text[:200]!r}")


def image(name: str, api: Api, promise: Promise) -> None:
    """A picture of this format is seen, and its colour told."""
    _need_vision(promise, images=1)
    _recognised(api, _part("image", IMAGES[name]))


def video(name: str, api: Api, promise: Promise) -> None:
    """A clip of this format is seen, and its colour told."""
    _need_vision(promise, videos=1)
    _recognised(api, _part("video", VIDEOS[name]))


checks(image, "image", *IMAGES)
checks(video, "video", *VIDEOS)


@check
def vision_off(api: Api, promise: Promise) -> None:
    """Without vision a picture is refused, not ignored."""
    if promise.vision:
        raise NotPromised("images and video are on")
    refusal(_show(api, _part("image", IMAGES["png"])))


@check
def media_url_refused(api: Api, promise: Promise) -> None:
    """An https URL is refused, and nobody comes to fetch it."""
    _need_vision(promise, images=1)
    if promise.vision_urls:
        raise NotPromised("vision_urls is on")
    connection = api.connect()
    connection.connect()
    family, here = connection.sock.family, connection.sock.getsockname()[0]
    connection.close()
    with socket.create_server((here, 0), family=family) as trap, ThreadPoolExecutor(1) as pool:
        url = f"https://{netloc(here, trap.getsockname()[1])}/red.png"
        asked = pool.submit(_show, api, {"type": "image_url", "image_url": {"url": url}})
        came = False
        while not asked.done():
            came = _visited(trap) or came
        came = _visited(trap) or came
    need(not came, "the server went to fetch an https URL although vision_urls is off")
    refusal(asked.result())


def _visited(trap: socket.socket) -> bool:
    """Whether somebody connected lately; whoever did is sent away, so that he does not wait."""
    trap.settimeout(GLANCE)
    try:
        trap.accept()[0].close()
    except TimeoutError:
        return False
    return True


@check
def limit_images(api: Api, promise: Promise) -> None:
    """As many pictures as max_images are taken, and one more is refused."""
    _need_vision(promise)
    part = _part("image", IMAGES["png"])
    said(_show(api, *[part] * promise.max_images))
    refusal(_show(api, *[part] * (promise.max_images + 1)))


@check
def limit_image_bytes(api: Api, promise: Promise) -> None:
    """A picture of more than 10 MB is refused."""
    _need_vision(promise, images=1)
    refusal(_show(api, _part("image", big_png(64, 10 * MIB))))


@check
def limit_images_bytes(api: Api, promise: Promise) -> None:
    """Pictures of more than 64 MB together are refused, each of them small enough."""
    _need_vision(promise, images=SEVERAL)
    part = _part("image", big_png(64, 97 * MB // 10))
    refusal(_show(api, *[part] * SEVERAL))


@check
def limit_image_tokens(api: Api, promise: Promise) -> None:
    """A huge picture takes image_tokens at most."""
    _need_vision(promise, images=1)
    tokens = _seen(api, _show(api, _part("image", big_png(BIG))))
    need(
        tokens <= promise.image_tokens + MARGIN, f"one picture took {tokens} tokens of {promise.image_tokens}"
    )


@check
def limit_request_image_tokens(api: Api, promise: Promise) -> None:
    """Huge pictures together take request_image_tokens at most, or are refused."""
    _need_vision(promise, images=1)
    count = min(promise.max_images, promise.request_image_tokens // promise.image_tokens + 2)
    answer = _show(api, *[_part("image", big_png(BIG))] * count)
    if answer.status != 200:
        refusal(answer)
        return
    tokens, most = prompt_tokens(answer), promise.request_image_tokens + MARGIN
    need(tokens <= most, f"{count} pictures took {tokens} tokens of {promise.request_image_tokens}")


@check
def limit_videos(api: Api, promise: Promise) -> None:
    """As many clips as max_videos are taken, and one more is refused."""
    _need_vision(promise)
    part = _part("video", VIDEOS["mp4"])
    said(_show(api, *[part] * promise.max_videos))
    refusal(_show(api, *[part] * (promise.max_videos + 1)))


@check
def limit_video_bytes(api: Api, promise: Promise) -> None:
    """A clip of more than 64 MB is refused, in a body that is small enough."""
    _need_vision(promise, videos=1)
    mime, data = VIDEOS["mp4"]
    padding = "A" * (4 * (65 * MIB // 3))
    refusal(_show(api, _part("video", (mime, data.rstrip("=")[: len(data) // 4 * 4 - 4] + padding))))


@check
def limit_video_length(api: Api, promise: Promise) -> None:
    """A clip of more than an hour is refused."""
    _need_vision(promise, videos=1)
    refusal(_show(api, _part("video", LONG["mp4"])))


@check
def limit_body(api: Api, promise: Promise) -> None:
    """A body that would be larger than the limit is refused before it is sent."""
    if promise.body_limit_mib is None:
        raise NotPromised("this engine takes bodies of any size (body_limit_mib is empty)")
    answer = replace(api, seconds=min(api.seconds, 60.0)).announce(CHAT, promise.body_limit_mib * MIB + 1)
    answer.need(400, 413)
