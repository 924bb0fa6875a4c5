"""Is a pair well? Pure, from what its nodes said: one word for programs, a sentence for each thing wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .gateway import ending
from .services import GATEWAY, node_runs

_SUPERVISOR, _RANK = "twinserve.service", "twinserve-rank.service"
_SERVES = ("healthy", "degraded")


@dataclass(frozen=True)
class Health:
    """`word`: healthy; degraded (it serves, and somebody should look); starting, stopped, down, unhealthy;
    absent (nothing is deployed); unreachable (its head cannot be looked at).
    """

    word: str
    problems: tuple[str, ...] = ()

    @property
    def serves(self) -> bool:
        """Whether requests are answered, as far as is known."""
        return self.word in _SERVES


def judge(hosts: Sequence[str], nodes: Mapping[str, Mapping[str, Any]]) -> Health:
    """The health of the pair of `hosts`, by rank; `nodes` are probes by name, absent where unreachable."""
    head = nodes.get(hosts[0])
    if not head:
        return Health("unreachable", (f"head {hosts[0]} is unreachable from here",))
    if not head.get("pair_config"):
        return Health("absent", ("nothing is deployed on this head yet: run site.yml",))
    if not node_runs(head, _SUPERVISOR):
        return _unsupervised(hosts, nodes, head)
    state = head.get("state") or {}
    word, detail = state.get("state"), state.get("detail") or "the supervisor has not said anything yet"
    if word != "serving":
        return Health("down" if word == "down" else "starting", (detail,))
    if gone := tuple(_gone(hosts, nodes)):
        return Health("unhealthy", gone)
    problems = (*_doubts(hosts, nodes, state), *_closed(hosts[0], head))
    return Health("degraded" if problems else "healthy", problems)


def _unsupervised(
    hosts: Sequence[str], nodes: Mapping[str, Mapping[str, Any]], head: Mapping[str, Any]
) -> Health:
    """Nobody would bring the pair back: what runs all the same is no pair."""
    left = [(rank, name) for rank, name in enumerate(hosts) if node_runs(nodes.get(name, {}), _RANK)]
    if left:
        advice = "without the supervisor: run playbooks/stop.yml, then site.yml"
        return Health("unhealthy", tuple(f"rank {rank} ({name}) runs {advice}" for rank, name in left))
    unit = (head.get("services") or {}).get(_SUPERVISOR, {})
    if unit.get("ActiveState") == "failed":
        said = unit.get("StatusText") or "journalctl -u twinserve on the head says why"
        return Health("down", (f"the supervisor failed: {said}",))
    return Health("stopped", ("site.yml starts it",))


def _gone(hosts: Sequence[str], nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for rank, name in enumerate(hosts):
        if name in nodes and not node_runs(nodes[name], _RANK):
            yield f"rank {rank} ({name}) is gone"


def _closed(name: str, head: Mapping[str, Any]) -> Iterator[str]:
    """The pair serves, and nobody but the head reaches it."""
    if not head["pair_config"].get("api", {}).get("gateway"):
        return
    if not node_runs(head, GATEWAY):
        yield f"the gateway does not run: systemctl status twinserve-gateway on {name}"
    elif text := ending.ended(head, name):
        yield text


def _doubts(
    hosts: Sequence[str], nodes: Mapping[str, Mapping[str, Any]], state: Mapping[str, Any]
) -> Iterator[str]:
    """What does not keep a pair from serving, and may be the beginning of its end."""
    # The supervisor's own word comes first: it sees the worker as the pair does.
    if "degraded: " in state.get("detail", ""):
        yield state["detail"].split("degraded: ", 1)[1].split(", ")[0]
    yield from (f"{name} is unreachable from here" for name in hosts if name not in nodes)
    canary = state.get("last_canary")
    if canary and not canary["ok"]:
        yield f"the last canary got no answer ({canary['seconds']} s, {canary['at']})"
