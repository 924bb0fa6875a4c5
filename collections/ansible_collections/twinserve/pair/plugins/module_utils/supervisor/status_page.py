"""What the supervisor knows, as a page for people: the gateway shows it to who has a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from ..agent import paths
from ..atomic_file import replace
from ..snapshots import models
from .serving import unseen
from .state import RankView, State, recent_restarts
from .words import detail, shown, warnings

PAGE = Path("/run/twinserve/status.html")
# Seconds after which a browser asks again.
REFRESH = 10

Row = tuple[str, str]
# Green, red, and all that lies between.
_GOOD, _BAD, _BUSY = "good", "bad", "busy"
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #c62828; --busy: #b26a00; }
body { margin: 0 auto; max-width: 46rem; padding: 1.5rem; font: 1rem/1.5 system-ui, sans-serif; }
header { border-left: .4rem solid; padding-left: 1rem; margin-bottom: 1.5rem; }
h1 { margin: 0; font-size: 1.5rem; }
header p { margin: 0; }
.word { font-weight: bold; }
.good { border-color: var(--good); } .good .word { color: var(--good); }
.bad { border-color: var(--bad); } .bad .word { color: var(--bad); }
.busy { border-color: var(--busy); } .busy .word { color: var(--busy); }
h2 { margin: 1.25rem 0 .25rem; font-size: 1rem; }
dl { display: grid; grid-template-columns: 9rem 1fr; margin: 0; border-top: 1px solid var(--line); }
dt, dd { margin: 0; padding: .2rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
dt { opacity: .7; }
footer { margin-top: 1.5rem; font-size: .85rem; opacity: .7; }
"""


@dataclass(frozen=True)
class Versions:
    """What this rank is started from, which is the same for the other, beside its release."""

    runtime: str
    image: str = ""
    models: tuple[str, ...] = ()


def read_versions(plan: Path = paths.PLAN) -> Versions:
    """The versions of this node; without a plan, which no start can do without, the runtime's alone."""
    if not plan.exists():
        return Versions(paths.VERSION)
    data: dict[str, Any] = json.loads(plan.read_text(encoding="utf-8"))
    found = (f"{one['repo']} at {one['revision'][:12]}" for one in models(data))
    return Versions(paths.VERSION, str(data["image"]), tuple(found))


def write(state: State, versions: Versions, now: float, path: Path = PAGE) -> None:
    """Replace the page in one step; the gateway's own user reads it."""
    replace(path, page(state, versions, now).encode(), 0o644)


def page(state: State, versions: Versions, now: float) -> str:
    """The page; `now` is monotonic, as in the state."""
    word, colour = _word(state, now)
    pair = escape(state.config.pair)
    sections = {
        "Serving": _serving(state),
        "Health": _health(state, now),
        "Ranks": (_rank(view) for view in state.ranks),
        "Rails": _rails(state),
        "Versions": _versions(state, versions),
    }
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="refresh" content="{REFRESH}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{pair}: {escape(word)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<header class="{colour}">\n<h1>{pair}</h1>\n'
        f'<p><span class="word">{escape(word)}</span> since {_clock(state.since)}</p>\n'
        f"<p>{escape(detail(state, now))}</p>\n</header>\n<main>\n"
        + "".join(_section(title, rows) for title, rows in sections.items())
        + f"</main>\n<footer>As of {_clock(state.clock)}. This page asks again every {REFRESH} seconds. "
        "More: <code>ansible-playbook playbooks/status.yml</code></footer>\n</body>\n</html>\n"
    )


def _section(title: str, rows: Iterator[Row]) -> str:
    inside = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>\n" for name, text in rows)
    return f"<section>\n<h2>{title}</h2>\n<dl>\n{inside}</dl>\n</section>\n" if inside else ""


def _word(state: State, now: float) -> Row:
    word = shown(state, now)
    if word != "serving":
        return word, _BAD if word == "down" else _BUSY
    return ("degraded", _BUSY) if unseen(state, now) or state.canary.bad else (word, _GOOD)


def _serving(state: State) -> Iterator[Row]:
    health = state.api.health
    yield "Model", state.config.served_name
    if window := health.get("context_length"):
        yield "Window", f"{window:,} tokens"
    if pool := health.get("pool_tokens"):
        free = health.get("pool_free_tokens")
        yield "Pool", f"{pool:,} tokens" + ("" if free is None else f", {free:,} free")
    streams = f" of {state.config.streams} streams" if state.config.streams else ""
    yield "Requests", f"{state.api.others}{streams}"


def _health(state: State, now: float) -> Iterator[Row]:
    canary = state.canary
    if canary.ended is not None:
        said = f"answered in {canary.seconds:.1f} s" if canary.ok else canary.detail or "no answer"
        yield "Canary", f"{said}, {now - canary.ended:.0f} s ago"
    count = len(recent_restarts(state, now))
    minutes = state.config.restart_window / 60
    yield "Restarts", f"{count} of {state.config.restart_limit} within {minutes:.0f} minutes"
    if state.last_error:
        yield "Last error", state.last_error
    for warning in warnings(state):
        yield "Warning", warning


def _rank(view: RankView) -> Row:
    memory = view.memory_gib if view.gpu_gib is None else view.gpu_gib
    where = "in its container" if view.gpu_gib is None else "on its GPU"
    held = "" if memory is None else f", {memory:.1f} GiB {where}"
    return f"Rank {view.rank}", f"{view.name}: {'running' if view.running else 'not running'}{held}"


def _rails(state: State) -> Iterator[Row]:
    for number, rail in enumerate(state.link.rails):
        ends = (f"{state.ranks[end.rank].name} {end.hca} {end.address}" for end in rail)
        yield f"Rail {number}", " \N{LEFT RIGHT ARROW} ".join(ends)


def _versions(state: State, versions: Versions) -> Iterator[Row]:
    yield "Release", state.config.release
    if versions.image:
        yield "Image", versions.image
    for model in versions.models:
        yield "Weights", model
    yield "Twinserve", versions.runtime


def _clock(text: str) -> str:
    """A time of the state in a form for people: `2026-11-30 18:02:11 UTC`."""
    return escape(text.replace("T", " ").replace("+00:00", " UTC"))
