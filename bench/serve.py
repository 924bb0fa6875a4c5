"""`make bench`: a second run of the whole site, and a restart, beside a play with one task.

And beside the restart without any play, by `systemctl restart` on the head: what a play cannot go below.

The public shell recipe took 11.2 s for the first (its prepare and start with nothing to do) and 11.0 s
for the second (less the engine's own load), where a play with one task took 2.1 s, on hosts of this kind.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from bench.pair import Pair, options, tell
from bench.yardstick import ONE_TASK, play, run

# Less its last step, which asks the API: the recipe has none.
NO_CHANGE = ("site.yml", "--skip-tags", "verify")
RESTART = ("serve.yml", "-e", "restart=true")
RECIPE_YARDSTICK, RECIPE_NO_CHANGE, RECIPE_RESTART = 2.1, 11.2, 11.0
_TASK = re.compile(r"^(?P<name>\S.*?) -{2,} (?P<seconds>[\d.]+)s$", re.MULTILINE)
_OK = re.compile(r"ok=(\d+)")
_SHOWN = 6  # tasks that took longest
_BY_HAND = """
systemctl restart twinserve
until grep -q '"state": "serving"' /run/twinserve/state.json; do sleep 0.05; done
"""


@dataclass
class Way:
    """What is timed, and against which figure: seconds of every run, without the engine's load."""

    name: str
    words: Sequence[str]
    goal: float | None = None
    seconds: list[float] = field(default_factory=list)
    parts: list[Mapping[str, float]] = field(default_factory=list)
    tasks: int = 0
    round_trips: int = 0
    slowest: list[str] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)


def ways() -> tuple[Way, ...]:
    """The yardstick first."""
    return (
        Way("a play with one task", (str(ONE_TASK),)),
        Way("site.yml, nothing to do", NO_CHANGE, 0.8 * RECIPE_NO_CHANGE / RECIPE_YARDSTICK),
        Way("serve.yml -e restart=true", RESTART, 0.7 * RECIPE_RESTART / RECIPE_YARDSTICK),
        Way("systemctl restart twinserve", ()),
    )


def by_play(pair: Pair) -> float:
    """Seconds of a restart as people do it."""
    return run(pair, *RESTART)[0]


def by_hand(pair: Pair) -> float:
    """Seconds of a restart on the head itself, until the pair serves."""
    began = time.monotonic()
    pair.root(pair.hosts[0], _BY_HAND)
    return time.monotonic() - began


def restart(pair: Pair, do: Callable[[Pair], float]) -> tuple[float, Mapping[str, float]]:
    """Seconds of a restart less the engine's load, and where they go by the journal of the head."""
    began = _now(pair)
    seconds = do(pair)
    ended = _now(pair)
    told, said = (_lines(pair, unit, began) for unit in ("twinserve", "twinserve-rank"))
    rails, started, serving = (
        _last(told, text) for text in (" rails: ", "all ranks are started, loading", "serving: ")
    )
    ready = _last(said, "] serving ")
    # What the process that serves printed first; the rank before it has another.
    loading = next(line for line in said if line.process == ready.process)
    parts = {
        "plan, stop, and start of the supervisor": rails.at - began,
        "proof of the rails, start of both ranks": started.at - rails.at,
        "load": ready.at - loading.at,
        "from the load to the first reply": serving.at - ready.at,
        "after it serves": ended - serving.at,
    }
    return seconds - parts["load"], parts


@dataclass(frozen=True)
class _Line:
    """A line of the journal: when, by which process, what."""

    at: float
    process: str
    text: str


def _now(pair: Pair) -> float:
    return float(pair.root(pair.hosts[0], "date +%s.%N"))


def _lines(pair: Pair, unit: str, since: float) -> list[_Line]:
    text = pair.root(pair.hosts[0], f"journalctl -u {unit} -o json --since @{int(since)}")
    entries = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    lines = [
        _Line(int(one["__REALTIME_TIMESTAMP"]) / 1e6, one.get("_PID", ""), str(one["MESSAGE"]))
        for one in entries
    ]
    return [one for one in lines if one.at >= since]


def _last(lines: Sequence[_Line], text: str) -> _Line:
    return max((one for one in lines if text in one.text), key=lambda one: one.at)


def account(pair: Pair, way: Way) -> None:
    """One more run, watched: its tasks, its round trips, and which tasks took longest."""
    _, said = run(pair, "-vvv", *way.words, ANSIBLE_CALLBACKS_ENABLED="ansible.posix.profile_tasks")
    way.round_trips = len(re.findall(r"SSH: EXEC ", said))
    way.tasks = max(int(count) for count in _OK.findall(said))
    spent: defaultdict[str, float] = defaultdict(float)
    for found in _TASK.finditer(said):
        spent[found["name"]] += float(found["seconds"])
    longest = sorted(spent.items(), key=lambda one: -one[1])
    way.slowest = [f"{seconds:.2f} s {name}" for name, seconds in longest[:_SHOWN]]


def table(found: Sequence[Way]) -> str:
    """The figures for people."""
    yardstick = found[0].median
    lines = [f"{'':28} {'median':>8} {'plays':>7} {'goal':>7} {'tasks':>5} {'sent':>5}   runs (s)"]
    for one in found:
        goal = f"{one.goal:.2f}x" if one.goal else ""
        runs = " ".join(f"{seconds:.2f}" for seconds in one.seconds)
        figures = f"{one.median:>6.2f} s {one.median / yardstick:>6.2f}x {goal:>7}"
        lines.append(f"{one.name:28} {figures} {one.tasks:>5} {one.round_trips:>5}   {runs}")
    for one in found[1:]:
        lines += ["", f"{one.name}: where the time goes"]
        for name in one.parts[0] if one.parts else ():
            lines.append(f"  {statistics.median(part[name] for part in one.parts):5.2f} s {name}")
        lines += [f"   {text}" for text in one.slowest]
    return "\n".join(lines)


def main() -> None:
    """Bring a pair up and serve, measure, tell, and take it down."""
    given = options(__doc__)
    pair, found = Pair(given.name), ways()
    print("== two hosts that serve", flush=True)
    pair.verb("up")
    try:
        pair.play("site.yml")
        for _ in range(given.rounds):
            for way in found[:2]:
                way.seconds.append(play(pair, *way.words))
            for way, do in zip(found[2:], (by_play, by_hand), strict=True):
                seconds, parts = restart(pair, do)
                way.seconds.append(seconds)
                way.parts.append(parts)
        for way in found[:3]:
            account(pair, way)
    finally:
        if not given.keep:
            pair.verb("down", "--wipe")
    tell("serve", table(found), [asdict(way) for way in found])


if __name__ == "__main__":
    main()
