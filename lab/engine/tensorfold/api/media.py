"""Images and videos in a prompt: read from data URLs, checked against the limits, counted in tokens."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import struct
import urllib.request
from dataclasses import dataclass
from typing import Any

from ..colours import colour
from ..switches import Switches
from ..tokens import media_ids
from .errors import ApiError

MB = 1_000_000
PATCH = 28
URL_SECONDS = 20
VIDEO_SECONDS = 3600
PARTS = {"image_url": "image", "input_image": "image", "video_url": "video", "input_video": "video"}


@dataclass(frozen=True)
class Limits:
    """How much of one kind a request may hold: pieces, bytes each and together, tokens each and together."""

    count: int
    each: int
    total: int
    tokens: int
    all_tokens: int


NO_LIMITS = Limits(10**9, 10**12, 10**12, 10**9, 10**9)


@dataclass
class Media:
    """What a prompt shows: counts, the ids that stand for it, and its colour where that is known."""

    images: int
    videos: int
    ids: list[int]
    colour: str | None = None


def limits(kind: str) -> Limits:
    """The limits of a kind, as the environment sets them."""
    if kind == "image":
        return Limits(
            _env("TENSORFOLD_GLM_MAX_IMAGES", 50),
            10 * MB,
            64 * MB,
            _env("TENSORFOLD_GLM_IMAGE_TOKENS", 2048),
            _env("TENSORFOLD_GLM_REQUEST_IMAGE_TOKENS", 16384),
        )
    return Limits(
        _env("TENSORFOLD_GLM_MAX_VIDEOS", 4),
        64 * MB,
        96 * MB,
        _env("TENSORFOLD_GLM_VIDEO_TOKENS", 16384),
        _env("TENSORFOLD_GLM_REQUEST_VIDEO_TOKENS", 32768),
    )


def _env(key: str, default: int) -> int:
    return int(os.environ.get(key, default))


def collect(messages: list[dict[str, Any]], vision: bool, urls: bool, switches: Switches) -> Media:
    """All media of a prompt; a bad request if they are not allowed, not readable or too much."""
    found: dict[str, list[bytes]] = {"image": [], "video": []}
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else []:
            kind = PARTS.get(part.get("type"))
            if kind is None:
                continue
            if not vision:
                raise ApiError(f"this server does not accept {kind}s (it was started without --vision)")
            found[kind].append(_fetch(_address(part, kind), urls or switches.get("fetch_urls")))
    ids: list[int] = []
    for kind, blobs in found.items():
        refused = switches.get("refuse_media")
        if any(media_format(blob) in refused for blob in blobs):
            raise ApiError(f"{kind}s of this format are refused")
        ids += _count(kind, blobs, not switches.get("no_limits"))
    if switches.get("blind"):
        return Media(0, 0, [])
    seen = colour([*found["image"], *found["video"]])
    if seen and switches.get("wrong_colour"):
        seen = "green"
    return Media(len(found["image"]), len(found["video"]), ids, seen)


def _address(part: dict[str, Any], kind: str) -> str:
    value = part.get(f"{kind}_url")
    url = value.get("url") if isinstance(value, dict) else value
    if not isinstance(url, str):
        raise ApiError(f"a part of type {part['type']} needs {kind}_url.url")
    return url


def _fetch(url: str, urls: bool) -> bytes:
    if url.startswith("data:"):
        head, _, data = url.partition(",")
        if not head.endswith(";base64"):
            raise ApiError("a data URL must be base64")
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error:
            raise ApiError("a data URL is not valid base64") from None
    if not url.startswith(("http://", "https://")):
        raise ApiError("media must be given as a data URL")
    if not urls:
        raise ApiError("media URLs are off (the server was started without --vision-urls); send a data URL")
    try:
        with urllib.request.urlopen(url, timeout=URL_SECONDS) as answer:  # noqa: S310 (http and https only, above)
            return bytes(answer.read(limits("video").each + 1))
    except OSError as error:
        raise ApiError(f"media URL cannot be fetched: {error}") from None


def _count(kind: str, blobs: list[bytes], limited: bool) -> list[int]:
    allowed = limits(kind) if limited else NO_LIMITS
    if len(blobs) > allowed.count:
        raise ApiError(f"too many {kind}s: {len(blobs)}, at most {allowed.count}")
    if any(len(blob) > allowed.each for blob in blobs) or sum(map(len, blobs)) > allowed.total:
        raise ApiError(
            f"{kind}s are too large: at most {allowed.each // MB} MB each and {allowed.total // MB} MB in all"
        )
    ids: list[int] = []
    for blob in blobs:
        tokens = image_tokens(blob) if kind == "image" else video_tokens(blob, limited)
        ids += media_ids(hashlib.sha256(blob).digest(), min(tokens, allowed.tokens))
    if len(ids) > allowed.all_tokens:
        raise ApiError(f"{kind}s need {len(ids)} tokens, at most {allowed.all_tokens} in one request")
    return ids


def image_tokens(blob: bytes) -> int:
    """Tokens of an image: one for each 28 x 28 pixels."""
    width, height = image_size(blob)
    return max(1, -(-width // PATCH) * -(-height // PATCH))


def image_size(blob: bytes) -> tuple[int, int]:
    """Width and height in pixels of a PNG, JPEG or WebP."""
    try:
        if blob.startswith(b"\x89PNG\r\n\x1a\n"):
            width, height = struct.unpack(">II", blob[16:24])
            return width, height
        if blob.startswith(b"RIFF") and blob[8:12] == b"WEBP":
            return _webp_size(blob)
        if blob.startswith(b"\xff\xd8"):
            return _jpeg_size(blob)
    except (struct.error, IndexError):
        raise ApiError("an image is damaged") from None
    raise ApiError("an image is not a PNG, JPEG or WebP")


def _jpeg_size(blob: bytes) -> tuple[int, int]:
    at = 2
    while True:
        marker, length = struct.unpack(">HH", blob[at : at + 4])
        if 0xFFC0 <= marker <= 0xFFCF and marker not in (0xFFC4, 0xFFC8, 0xFFCC):
            height, width = struct.unpack(">HH", blob[at + 5 : at + 9])
            return width, height
        at += 2 + length


def _webp_size(blob: bytes) -> tuple[int, int]:
    if blob[12:16] == b"VP8X":
        return 1 + int.from_bytes(blob[24:27], "little"), 1 + int.from_bytes(blob[27:30], "little")
    if blob[12:16] == b"VP8L":
        bits = int.from_bytes(blob[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", blob[26:30])
    return width & 0x3FFF, height & 0x3FFF


def video_tokens(blob: bytes, limited: bool) -> int:
    """Tokens of a video; frames are not decoded, the size stands for the length."""
    if blob[4:8] != b"ftyp" and not blob.startswith(b"\x1a\x45\xdf\xa3"):
        raise ApiError("a video is not an MP4, MOV, WebM or MKV")
    if limited and mp4_seconds(blob) > VIDEO_SECONDS:
        raise ApiError(f"a video is longer than {VIDEO_SECONDS} s")
    return 256 + len(blob) // 1024


def mp4_seconds(blob: bytes) -> float:
    """The length that the header of an MP4 or MOV gives; 0 without one."""
    at = blob.find(b"mvhd\0")
    if at < 0:
        return 0.0
    scale, length = struct.unpack(">II", blob[at + 16 : at + 24])
    return float(length / scale)


def media_format(blob: bytes) -> str:
    """What a blob is, by its first bytes."""
    if blob[4:8] == b"ftyp":
        return "mov" if blob[8:10] == b"qt" else "mp4"
    if blob.startswith(b"\x1a\x45\xdf\xa3"):
        return "webm" if b"webm" in blob[:64] else "mkv"
    if blob.startswith(b"\xff\xd8"):
        return "jpeg"
    return "webp" if blob.startswith(b"RIFF") else "png"
