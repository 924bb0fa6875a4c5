"""What a pair promises of its API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from .found import Wrong


@dataclass(frozen=True)
class Promise:
    """The names are those of the settings, and of `api` in the engine's data, where they are explained."""

    served_name: str
    reasoning_effort: tuple[str, ...]
    effort_field: str
    reasoning_field: str
    thought_tokens: int
    likeliest: Mapping[str, Any]
    same_answer: bool
    usage_in_streams: Mapping[str, Any]
    guided_field: str
    tool_use: bool
    tool_choice: tuple[str, ...]
    vision: bool
    vision_urls: bool
    parallel: int
    prompts_kept: bool
    more_chat_routes: tuple[str, ...]
    messages: bool
    responses_kept: bool
    tokenize_v1: bool
    tokenize_fields: Mapping[str, Any]
    chunked_bodies: bool
    body_limit_mib: int | None
    window_error: Mapping[str, Any]
    budget_is_cut: bool
    health_pool: bool
    health_metrics: Mapping[str, tuple[str, ...]]
    running_metric: str | None
    cached_metric: str | None
    full_status: int
    max_queued: int | None
    image_tokens: int
    max_images: int
    max_videos: int
    request_image_tokens: int


def read_promise(given: Mapping[str, Any]) -> Promise:
    """A promise from plain data, as the head's configuration has it.  Raises Wrong for another version's."""
    if strange := sorted({one.name for one in fields(Promise)} ^ set(given)):
        raise Wrong(
            f"the pair's configuration was written by another version of Twinserve ({', '.join(strange)}): "
            "run serve.yml, which restarts nothing for that"
        )
    lists = {name: tuple(given[name]) for name in ("reasoning_effort", "tool_choice", "more_chat_routes")}
    metrics = {name: tuple(parts) for name, parts in given["health_metrics"].items()}
    return Promise(**{**given, **lists, "health_metrics": metrics})
