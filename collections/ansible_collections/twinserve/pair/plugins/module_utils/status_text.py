"""One screen about a pair, a line about each of several: pure, for the moment when something is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def screen(report: Mapping[str, Any]) -> str:
    """The screen of one pair, from its document (module `pair_report`)."""
    if report["health"] in ("absent", "unreachable"):
        return overview([report])
    return "\n".join(_lines(report))


def overview(reports: Sequence[Mapping[str, Any]]) -> str:
    """One line a pair."""
    return "\n".join(": ".join([one["pair"], *_summary(one)]) for one in reports)


def _summary(report: Mapping[str, Any]) -> Iterator[str]:
    yield report["health"]
    if report["problems"]:
        yield "; ".join(report["problems"])
    elif report["api"]:
        yield report["api"]


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    word = report["state"]
    detail = f", {report['detail']}" if report["detail"] else ""
    yield f"{report['pair']}: {word}{detail.removeprefix(f', {word}')}"
    # What is down or on its way has said so in the first line.
    if report["health"] in ("degraded", "unhealthy"):
        yield from (f"  health   {report['health']}: {problem}" for problem in report["problems"])
    yield f"  api      {report['api']} ({report['served_name']})"
    if gateway := report["gateway"]:
        ends = f", certificate until {gateway['certificate_ends']}" if gateway["certificate_ends"] else ""
        yield f"  gateway  {'running' if gateway['running'] else 'not running'}{ends}"
    window, pool, free = (_number(report[key]) for key in ("window", "pool_tokens", "pool_free_tokens"))
    streams = f", {report['streams']} streams" if report["streams"] else ""
    # Not every engine tells its pool.
    pools = f", pool {pool}, free {free}" if report["pool_tokens"] is not None else ""
    yield f"  window   {window} tokens{pools}{streams}"
    for one in report["ranks"]:
        yield f"  rank {one['rank']}   {_rank(one)}"
    yield from _rails(report["rails"])
    yield f"  release  {report['release']}"
    yield from _models(report["ranks"])
    yield from _history(report)


def _rank(one: Mapping[str, Any]) -> str:
    if not one["reachable"]:
        return f"{one['name']}: unreachable from here"
    running = "running" if one["running"] else "not running"
    gpu = f", {one['gpu_gib']:.1f} GiB on the GPU" if one["gpu_gib"] is not None else ""
    image = f"image {one['image'][7:19]}" if one["image"] else "image missing"
    free = one["memory_available_gib"]
    memory = f", {free:.0f} GiB memory free" if free is not None else ""
    return f"{one['name']}: {running}{gpu}, {image}{memory}"


def _models(ranks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each snapshot once; the ranks are named where not all that are known run it."""
    known = [one for one in ranks if one["models"]]
    users: dict[str, list[str]] = {}
    for one in known:
        for model in one["models"]:
            text = f"{model['repo']} at {model['revision'][:12]}"
            users.setdefault(text, []).append(f"rank {one['rank']}")
    for text, names in users.items():
        only = "" if len(names) == len(known) else f" ({', '.join(names)} only)"
        yield f"  weights  {text}{only}"


def _rails(rails: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for number, rail in enumerate(rails):
        ends = " <-> ".join(_end(rail[side]) for side in ("head", "worker"))
        yield f"  rail {number}   {ends}{'' if rail.get('used', True) else ', not used'}"


def _end(end: Mapping[str, Any]) -> str:
    return f"{end['hca']} {end['address']} (GID {end['gid_index']})"


def _history(report: Mapping[str, Any]) -> Iterator[str]:
    canary = report["canary"]
    if canary:
        word = "answered" if canary["ok"] else "no answer"
        yield f"  canary   {word} in {canary['seconds']} s at {canary['at']}"
    error = report["last_error"]
    last = f", last error: {error}" if error and error not in (report["detail"] or "") else ""
    yield f"  restarts {len(report['restarts'])}{last}"
    if report["drift"]:
        yield "  drift    running with other settings than written: run serve.yml -e restart=true"
    for warning in report["warnings"]:
        yield f"  warning  {warning}"


def _number(value: Any) -> str:
    return "-" if value is None else str(value)
