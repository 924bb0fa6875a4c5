"""What a pair promises of its API: what its engine and release can, as its settings have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from .acceptance.promise import Promise
from .conditions import Facts, holds

LIMITS = ("image_tokens", "max_images", "max_videos", "request_image_tokens")


def promised(settings: Mapping[str, Any], release: Mapping[str, Any]) -> dict[str, Any]:
    """The promise of a pair with these (effective) settings, as plain data."""
    own = release["engine_defaults"]
    queued = (settings.get("engine_env") or {}).get(release["api"]["queue_variable"])
    known = {
        **release["api"],
        **settings,
        "prompts_kept": holds(release["api"]["prompts_kept"], Facts(settings)),
        "health_metrics": release.get("health_metrics", {}),
        # Zero is a limit, and empty is none.
        "max_queued": int(str(queued)) if str(queued).isdigit() else None,
        **{name: own[name] if settings.get(name) is None else settings[name] for name in LIMITS},
    }
    return {field.name: known[field.name] for field in fields(Promise)}
