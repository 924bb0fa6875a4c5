"""What a pair promises of its API: what its release can, as its settings have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

LIMITS = ("image_tokens", "max_images", "max_videos", "request_image_tokens")


@dataclass(frozen=True)
class Promise:
    """The names are those of the settings and of a release's `api`."""

    served_name: str
    reasoning_effort: tuple[str, ...]
    vision: bool
    vision_urls: bool
    parallel: int
    messages: bool
    chunked_bodies: bool
    body_limit_mib: int
    health_pool: bool
    full_status: int
    max_queued: int | None
    image_tokens: int
    max_images: int
    max_videos: int
    request_image_tokens: int


def promised(settings: Mapping[str, Any], release: Mapping[str, Any]) -> dict[str, Any]:
    """The promise of a pair with these (effective) settings, as plain data."""
    own = release["engine_defaults"]
    queued = (settings.get("engine_env") or {}).get(release["api"]["queue_variable"])
    known = {
        **release["api"],
        **settings,
        # Zero is a limit, and empty is none.
        "max_queued": int(str(queued)) if str(queued).isdigit() else None,
        **{name: own[name] if settings.get(name) is None else settings[name] for name in LIMITS},
    }
    return {field.name: known[field.name] for field in fields(Promise)}


def read_promise(given: Mapping[str, Any]) -> Promise:
    """The same from plain data."""
    return Promise(**{**given, "reasoning_effort": tuple(given["reasoning_effort"])})
