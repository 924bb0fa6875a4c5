"""What is wrong with a pair, from all that was looked at, in the order in which to mend it: pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

# What keeps the pair from serving, what may, and what the logs tell of the past.
FAULT, WARNING, LOG = "fault", "warning", "log"
_SICK = ("down", "unhealthy", "unreachable")
_DOUBTFUL = ("degraded",)


@dataclass(frozen=True)
class Finding:
    """One thing, in a sentence that says what to do; `where` is a node, or empty for the pair."""

    kind: str
    where: str
    text: str


def of_pair(report: Mapping[str, Any]) -> Iterator[Finding]:
    """From the document of the pair. A pair that was stopped, or never deployed, is not sick."""
    health = report["health"]
    if health in (*_SICK, *_DOUBTFUL):
        kind = FAULT if health in _SICK else WARNING
        yield from (Finding(kind, "", f"{health}: {problem}") for problem in report["problems"])
    for rank in report["ranks"]:
        told = health == "unreachable" and rank["rank"] == 0
        if not rank["reachable"] and not told:
            yield Finding(
                FAULT, rank["name"], "is unreachable from here: the checks of the nodes are left out"
            )
    if report["drift"]:
        yield Finding(WARNING, "", "runs with other settings than written: serve.yml -e restart=true")
    yield from (Finding(WARNING, "", str(text)) for text in report["warnings"])


def of_node(
    name: str,
    refused: str | None,
    preflight: Mapping[str, Any] | None,
    signs: Mapping[str, Any] | None,
) -> Iterator[Finding]:
    """From what was found out on one node; None for what was not looked at."""
    if refused:
        yield from (Finding(FAULT, name, f"settings: {line}") for line in _refusals(refused))
        yield Finding(WARNING, "", "without settings the checks of the nodes are left out")
    seen = preflight or {}
    for kind, key in ((FAULT, "faults"), (WARNING, "warnings"), (WARNING, "needs")):
        # Some begin with the node's name already.
        yield from (Finding(kind, name, _without(text, name)) for text in seen.get(key, []))
    looked = signs or {}
    yield from (Finding(WARNING, name, text) for text in looked.get("unread", []))
    yield from (Finding(LOG, name, _sign(one)) for one in looked.get("found", []))


def of_link(plans: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """From the plans of the link: what a run of site.yml would refuse, and what it would warn of."""
    for kind, key in ((FAULT, "error"), (WARNING, "warnings")):
        texts = [text for plan in plans for text in _texts(plan.get(key))]
        yield from (Finding(kind, "", f"link: {text}") for text in dict.fromkeys(texts))


def ordered(found: Iterable[Finding]) -> list[dict[str, Any]]:
    """Each once, faults first, in the order in which they were found."""
    every = list(dict.fromkeys(found))
    return [asdict(one) for kind in (FAULT, WARNING, LOG) for one in every if one.kind == kind]


def screen(found: Sequence[Mapping[str, Any]], report: Mapping[str, Any]) -> str:
    """What people read about the pair of `report`."""
    if not found:
        return f"{report['pair']}: {report['health']}; nothing was found"
    lines = [f"{report['pair']}: {report['health']}"]
    titles = {FAULT: "to be mended", WARNING: "to be looked at", LOG: "known failures in the logs"}
    for kind, title in titles.items():
        some = [one for one in found if one["kind"] == kind]
        lines += [f"  {title}:"] if some else []
        lines += [f"  - {': '.join(filter(None, [one['where'], one['text']]))}" for one in some]
    return "\n".join(lines)


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) and value else list(value or [])


def _without(text: str, name: str) -> str:
    return text.removeprefix(f"{name}: ").removeprefix(f"{name} ")


def _refusals(text: str) -> list[str]:
    """The faults in the refusal of a host's settings: its own line, or one each below a title."""
    lines = text.splitlines()
    return [line.removeprefix("- ") for line in (lines[1:] or lines) if "says what is wrong with" not in line]


def _sign(one: Mapping[str, Any]) -> str:
    times = f"{one['count']} times, last" if one["count"] > 1 else "once,"
    return f"{one['line']} ({times} in {one['where']}): {one['cure']}"
