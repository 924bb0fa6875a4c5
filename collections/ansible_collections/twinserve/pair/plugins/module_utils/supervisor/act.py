"""Doing what a step asked for, each action in a thread of its own, so that none holds up the watching."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from .client import Client, ClientError
from .config import Config
from .events import Action, Ask, Done, Logs, Look, Probe, RankAction, Reach, Report, Start, Stop
from .nodes import Node, NodeError

_QUICK, _SLOW, _START = 12.0, 40.0, 330.0
# The agent's own limits on top of the container's stop timeout.
_STOP_EXTRA = 240.0
_REPORT_FIELDS = frozenset({"version", "devices", "memory", "plan", "container", "pcie_error"})
_CONTAINER_FIELDS = frozenset({"id"})
_RANK_FIELDS = frozenset(
    {"unit", "container", "exit_code", "gpu_gib", "memory_gib", "dark", "log", "starved", "warnings"}
)


class Doer:
    """Nodes and API of one pair."""

    def __init__(self, config: Config, nodes: Sequence[Node], client: Client) -> None:
        self._config, self._nodes, self._client = config, nodes, client

    def do(self, action: Action) -> Done:
        """Do one action and return its answer; whatever can go wrong outside becomes the answer's error."""
        began = time.monotonic()
        try:
            value, error = self._value(action), None
        except (NodeError, ClientError) as failed:
            value, error = None, str(failed)
        except (ValueError, KeyError, TypeError) as failed:
            value, error = None, f"gave an answer that cannot be read ({failed!r})"
        return Done(action, value, error, time.monotonic() - began)

    def _value(self, action: Action) -> Any:
        match action:
            case Look():
                return self._client.look(self._config.served_name)
            case Ask(model=model, timeout=timeout):
                return self._client.ask(model, self._config.smoke, timeout)
            case RankAction(rank=rank):
                return _on_node(self._nodes[rank], action, self._config.stop_timeout)
        raise ValueError(f"nothing to do for {action}")


def in_thread(doer: Doer, action: Action, answer: Callable[[Done | Exception], None]) -> None:
    """Do an action beside the loop. A fault of our own is handed over too: it must not go unseen."""

    def work() -> None:
        try:
            answer(doer.do(action))
        except Exception as fault:  # raised again by the loop
            answer(fault)

    threading.Thread(target=work, name=type(action).__name__, daemon=True).start()


def _on_node(node: Node, action: RankAction, stop_timeout: float) -> Any:
    match action:
        case Report():
            return _object(node.call(["report"], "", _SLOW), _REPORT_FIELDS)
        case Probe(loading=loading):
            words = ["state", "loading"] if loading else ["state"]
            return _object(node.call(words, "", _QUICK), _RANK_FIELDS)
        case Reach(targets=targets):
            return json.loads(node.call(["reach"], json.dumps([asdict(one) for one in targets]), _SLOW))
        case Start(link=link):
            return _object(node.call(["start"], link, _START), _CONTAINER_FIELDS)
        case Stop(kill=kill):
            return _object(
                node.call(["kill" if kill else "stop"], "", stop_timeout + _STOP_EXTRA), frozenset()
            )
        case Logs(lines=lines):
            return node.call(["logs", str(lines)], "", _SLOW)
    raise ValueError(f"no verb for {action}")


def _object(text: str, fields: frozenset[str]) -> dict[str, Any]:
    """Read an answer, so that the step may rely on its fields."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise TypeError("no JSON object")
    if missing := fields - data.keys():
        raise KeyError(", ".join(sorted(missing)))
    return data
