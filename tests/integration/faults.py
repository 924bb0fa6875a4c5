"""A fault, and how long the pair takes to serve again, by what its own journals say."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from lab_pair import ROOT, Lab

CONFIG = "/etc/twinserve/pair.json"
_TUNE = """
import json, sys
path, changes = sys.argv[1], json.loads(sys.argv[2])
with open(path) as file:
    data = json.load(file)
with open(path, "w") as file:
    json.dump({**data, **changes}, file)
"""


@dataclass(frozen=True)
class Way:
    """Seconds of one way back: until the fault was seen, until the ranks run, their load, the first reply."""

    seen: float
    start: float
    load: float
    reply: float

    @property
    def ours(self) -> float:
        """All but what the engine takes to load."""
        return self.seen + self.start + self.reply


@dataclass
class Table:
    """A row for each fault, by its name: those of this run, and of earlier ones where this has none."""

    path: Path = ROOT / "build/faults.md"

    def add(self, fault: str, becomes: str, way: Way | None = None) -> None:
        """Write a row into the file at once: a run that ends early has its rows too."""
        seconds = [] if way is None else [way.seen, way.start, way.reply, way.ours]
        cells = [f"{value:.1f}" for value in seconds] or ["-"] * 4
        rows = self._rows()
        rows[fault] = f"| {' | '.join([fault, becomes, *cells])} |"
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text("\n".join([*_HEAD, *rows.values(), ""]), encoding="utf-8")

    def _rows(self) -> dict[str, str]:
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        return {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines()[len(_HEAD) :]}


_HEAD = [
    "| fault | what becomes of it | seen | ranks started | first reply | all, without the load |",
    "| --- | --- | --- | --- | --- | --- |",
]


def state(lab: Lab) -> dict[str, Any]:
    """What the supervisor says; nothing while its node is off, or it has said nothing since the boot."""
    text = lab.verb("exec", lab.hosts[0], "cat", "/run/twinserve/state.json", check=False)
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError:
        return {"state": "unknown", "detail": text}
    return found


def wait_for(what: Callable[[], bool], lab: Lab, seconds: float = 150) -> None:
    """Until it is so; the bound only ends a test that would hang."""
    limit = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < limit, state(lab)
        time.sleep(0.5)


def settled(lab: Lab, **changes: Any) -> None:
    """Wait for a pair that serves and is watched as `changes` say (limits that no setting allows, too)."""
    before = state(lab).get("config_sha256")
    lab.root(lab.hosts[0], "python3", "-c", _TUNE, CONFIG, json.dumps(changes))
    sha = lab.root(lab.hosts[0], "sha256sum", CONFIG).split()[0]
    if before != sha:
        lab.root(lab.hosts[0], "systemctl", "reload-or-restart", "twinserve")
        wait_for(lambda: state(lab).get("config_sha256") != before, lab)
    wait_for(lambda: bool(state(lab)["state"] == "serving"), lab)


def lines(lab: Lab, unit: str, since: float) -> list[tuple[float, str]]:
    """What a unit on the head printed since then, each line with its time."""
    text = lab.root(lab.hosts[0], "journalctl", "-u", unit, "-o", "json", "--since", f"@{int(since)}")
    entries = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    timed = [(int(one["__REALTIME_TIMESTAMP"]) / 1e6, str(one["MESSAGE"])) for one in entries]
    return [one for one in timed if one[0] >= since]


def back(lab: Lab, since: float, seconds: float = 150) -> Way:
    """Wait until the pair serves by itself after a fault at `since`, and say what took how long."""
    wait_for(lambda: _served(lab, since), lab, seconds)
    assert "OK" in lab.chat("Reply with OK.")
    told = lines(lab, "twinserve", since)
    started = _last(told, "all ranks are started, loading")
    serving = _last(told, "serving: ")
    seen = next((at for at, text in told if text.startswith("failed: ") and at < started), since)
    ready = _last([one for one in lines(lab, "twinserve-rank", started) if one[0] < serving], "] serving ")
    return Way(seen - since, started - seen, ready - started, serving - ready)


def _served(lab: Lab, since: float) -> bool:
    if state(lab)["state"] != "serving":
        return False
    told = [text for _, text in lines(lab, "twinserve", since)]
    starts = [n for n, text in enumerate(told) if text == "all ranks are started, loading"]
    return bool(starts) and any(text.startswith("serving: ") for text in told[starts[-1] :])


def _last(told: list[tuple[float, str]], text: str) -> float:
    return max(at for at, line in told if text in line)


def switched_on(lab: Lab, *hosts: str) -> float:
    """Switch nodes on, one after the other, and return when ssh of the last one answers."""
    for host in hosts:
        booting = Thread(target=lab.verb, args=("power-on", host))
        booting.start()
        at = reachable(lab, host)
        booting.join()
    return at


def reachable(lab: Lab, host: str) -> float:
    """When the node's ssh answers; it does not yet."""
    entries = [line.split() for line in (lab.folder / "ssh_config").read_text().splitlines()]
    address = next(words[2] for words in entries if words[:2] == ["Host", host])
    wait_for(lambda: answers_on(address, 22), lab)
    return time.time()


@contextmanager
def beside(lab: Lab, *argv: str) -> Iterator[subprocess.Popen[str]]:
    """A program that runs on the head meanwhile."""
    words = [str(ROOT / "lab/lab"), "exec", "--name", lab.name, lab.hosts[0], *argv]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def answers_on(address: str, port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection((address, port), timeout=0.5).close()
    except OSError:
        return False
    return True
