"""Reading fields of a request body, each with its type; a wrong one is a bad request that names the field."""

from __future__ import annotations

from typing import Any

from .errors import ApiError, window_exceeded

EFFORTS = ("none", "low", "medium", "high", "max")
RANGES = {
    "temperature": (0.0, 100.0),
    "top_p": (0.0, 1.0),
    "min_p": (0.0, 1.0),
    "top_k": (-1.0, 1e9),
    "seed": (-(2.0**63), 2.0**64),
}


def flag(body: dict[str, Any], key: str) -> bool:
    """A boolean field, false when absent or null."""
    value = body.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise ApiError(f"{key} must be true or false", param=key)
    return value


def integer(body: dict[str, Any], *keys: str) -> int | None:
    """The first of several names that is given, a positive whole number."""
    for key in keys:
        value = body.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ApiError(f"{key} must be a positive whole number", param=key)
        return value
    return None


def check_sampling(body: dict[str, Any]) -> None:
    """Refuse sampling values of a wrong type or out of range."""
    for key, (low, high) in RANGES.items():
        value = body.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise ApiError(f"{key} must be a number from {low:g} to {high:g}", param=key)


def stops(body: dict[str, Any]) -> tuple[str, ...]:
    """The stop texts: one string or a list of them."""
    value = body.get("stop")
    if value is None:
        return ()
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise ApiError("stop must be a string or a list of strings", param="stop")
    return tuple(found)


def effort(body: dict[str, Any], thinking: bool, default: str) -> str | None:
    """How hard to think, or None for not at all: the request's wish, else the server's default."""
    wish = body.get("reasoning_effort")
    if wish is None and isinstance(body.get("reasoning"), dict):
        wish = body["reasoning"].get("effort")
    if wish is not None and wish not in EFFORTS:
        raise ApiError(f"reasoning_effort must be one of {', '.join(EFFORTS)}", param="reasoning_effort")
    template = body.get("chat_template_kwargs") or {}
    if not isinstance(template, dict):
        raise ApiError("chat_template_kwargs must be an object", param="chat_template_kwargs")
    if wish == "none" or template.get("enable_thinking") is False:
        return None
    if wish is None and not thinking and template.get("enable_thinking") is not True:
        return None
    return str(wish or default)


def budget(window: int, prompt: int, asked: int | None, default: int, param: str) -> int:
    """Tokens that may be generated: an explicit wish must fit, the default is cut to what is left."""
    if asked is not None and prompt + asked > window:
        raise window_exceeded(window, prompt, asked, param)
    if prompt >= window:
        raise window_exceeded(window, prompt, 1, param)
    return asked if asked is not None else min(default, window - prompt)


def mood(body: dict[str, Any]) -> int:
    """What the seed changes in an answer that is not forced: nothing where sampling leaves one choice."""

    def given(key: str, default: float) -> float:
        value = body.get(key)
        return default if value is None else float(value)

    one_choice = (
        given("temperature", 1) == 0
        or given("top_p", 1) < 0.01
        or given("top_k", 0) == 1
        or given("min_p", 0) >= 1
    )
    return 0 if one_choice else int(given("seed", 0))
