"""The short check of a serving pair: it lists its model, answers one chat request and shows metrics."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from typing import Any

from .listeners import Listener


class ApiError(RuntimeError):
    """The API did not answer as a serving pair does; the text names the request and what came back."""


class ApiBusy(ApiError):
    """The API had no time for us, which says nothing about whether the pair serves well."""


_BUSY = (429, 503)
# `ss` shows a socket for both kinds of addresses as an asterisk.
_EVERYWHERE = {"0.0.0.0", "::", "*"}


def call(url: str, body: dict[str, Any] | None = None, timeout: float = 180.0) -> str:
    """GET, or POST of a JSON body; the proxy settings of the environment do not apply to our own loopback."""
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout) as response:
            text: str = response.read().decode()
    except urllib.error.HTTPError as error:
        kind = ApiBusy if error.code in _BUSY else ApiError
        raise kind(f"{url} answered {error.code}: {error.read(300).decode(errors='replace')}") from error
    except TimeoutError as error:
        raise ApiBusy(f"{url} did not answer within {timeout:.0f} s") from error
    except (OSError, http.client.HTTPException) as error:
        raise ApiError(f"{url} did not answer: {error}") from error
    return text


def call_json(url: str, body: dict[str, Any] | None = None, timeout: float = 180.0) -> dict[str, Any]:
    """The same, for an answer that is a JSON object."""
    return _object(url, call(url, body, timeout))


def _object(url: str, text: str) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ApiError(f"{url} answered something else than a JSON object: {text[:300]!r}")
    return answer


def bound(address: str, port: int, listeners: Iterable[Listener]) -> None:
    """See that the API listens at the address that was asked for (ApiError), and not at all of them."""
    at = [one.address for one in listeners if one.port == port]
    if address not in at and not (address in _EVERYWHERE and _EVERYWHERE & set(at)):
        where = ", ".join(at) or "none"
        raise ApiError(f"the API was to listen on {address} port {port}, and it listens on {where}")


def check(base: str, served_name: str, prompt: str, extra: dict[str, Any], max_tokens: int) -> dict[str, Any]:
    """Ask for models, one chat and metrics; return the answer and what the server says of itself."""
    models = [str(one.get("id")) for one in call_json(f"{base}/v1/models", timeout=10).get("data", [])]
    if served_name not in models:
        raise ApiError(f"{base}/v1/models lists {', '.join(models) or 'nothing'} instead of {served_name}")
    body = {"model": served_name, "messages": [{"role": "user", "content": prompt}], "max_tokens": max_tokens}
    began = time.monotonic()
    reply = call_json(f"{base}/v1/chat/completions", {**body, **extra})
    choice = (reply.get("choices") or [{}])[0]
    answer = (choice.get("message", {}).get("content") or "").strip()
    if not answer:
        raise ApiError(f"{base}/v1/chat/completions gave an empty answer to {prompt!r}")
    seconds = round(time.monotonic() - began, 2)
    if "_total" not in call(f"{base}/metrics", timeout=10):
        raise ApiError(f"{base}/metrics shows no counters")
    # Some engines say nothing there but that they live.
    health = call(f"{base}/health", timeout=10) or "{}"
    return {
        "models": models,
        "answer": answer,
        "seconds": seconds,
        "health": _object(f"{base}/health", health),
    }
