"""The pair's API, as the supervisor asks it: on this machine, without any proxy."""

from __future__ import annotations

import http.client
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from .smoke import Reply

_QUICK = 5.0
# A line of Prometheus' text format: a name, perhaps labels, a value.
_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{.*\})? (\S+)", re.MULTILINE)


class ClientError(RuntimeError):
    """The API did not answer; the text says how."""


class Client:
    """HTTP to one address. A connection a request: a dead server must show at once.

    `metrics` names, for what the server does not say in its /health, those of its /metrics that add up to it.
    """

    def __init__(self, host: str, port: int, metrics: Mapping[str, Sequence[str]] | None = None) -> None:
        self._host, self._port, self._metrics = host, port, metrics or {}

    def look(self, served_name: str) -> dict[str, Any]:
        """Return the model's name, and the server's counters (empty when it shows none) and window.

        Raises ClientError while the model is not listed: another server on our port is none of ours.
        """
        status, body = self._request("GET", "/v1/models", None, _QUICK)
        models = _object(body).get("data") or []
        if status != 200 or not models:
            raise ClientError(f"/v1/models: HTTP {status}")
        names = [str(model.get("id")) for model in models]
        if served_name not in names:
            raise ClientError(f"/v1/models: another server answers on port {self._port}: it has "
                              f"{', '.join(names)}, not {served_name}")  # fmt: skip
        window = next((one.get("max_model_len") for one in models if str(one.get("id")) == served_name), None)
        status, body = self._request("GET", "/health", None, _QUICK)
        told = {} if window is None else {"context_length": window}
        told |= _object(body) if status == 200 else {}
        return {"model": served_name, "health": told | self._counted()}

    def _counted(self) -> dict[str, float]:
        if not self._metrics:
            return {}
        status, text = self._request("GET", "/metrics", None, _QUICK)
        sums = added(text) if status == 200 else {}
        known = {name: [sums[one] for one in parts if one in sums] for name, parts in self._metrics.items()}
        return {name: sum(values) for name, values in known.items() if values}

    def ask(self, model: str, smoke: Mapping[str, Any], timeout: float) -> Reply:
        """Send the tiny completion; raises ClientError when there is no answer within `timeout` seconds."""
        body = {
            "model": model,
            "messages": [{"role": "user", "content": smoke["prompt"]}],
            "max_tokens": smoke["max_tokens"],
            **smoke["extra"],
        }
        status, text = self._request("POST", "/v1/chat/completions", json.dumps(body), timeout)
        answer = _object(text)
        if status != 200:
            error = answer.get("error", text)
            return Reply(status, str(error.get("message") if isinstance(error, dict) else error))
        choice = (answer.get("choices") or [{}])[0]
        message = choice.get("message") or {}
        # Servers differ in what they call it.
        thought = message.get("reasoning") or message.get("reasoning_content") or ""
        cut = choice.get("finish_reason") == "length"
        return Reply(status, str(message.get("content") or ""), str(thought), cut)

    def _request(self, method: str, path: str, body: str | None, timeout: float) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            response = connection.getresponse()
            return response.status, response.read().decode("utf-8", "replace")
        except TimeoutError as error:
            raise ClientError(f"{path}: no answer within {timeout:.0f} s") from error
        except (OSError, http.client.HTTPException) as error:
            raise ClientError(f"{path}: {error or type(error).__name__}") from error
        finally:
            connection.close()


def added(text: str) -> dict[str, float]:
    """The metrics of a /metrics page, each added up over its labels."""
    sums: defaultdict[str, float] = defaultdict(float)
    for name, value in _SAMPLE.findall(text):
        try:
            sums[name] += float(value)
        except ValueError:  # no sample: a text that only looks like one
            continue
    return dict(sums)


def _object(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}
