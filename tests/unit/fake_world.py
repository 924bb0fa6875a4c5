"""A pair without machines: two ranks and an API behind the supervisor's edges, and a clock turned by hand.

The supervisor's real loop, doer and parsers run against it. A rank follows a script: one `Start` an attempt.
"""

from __future__ import annotations

import json
import queue
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import fake_pair
from ansible_collections.twinserve.pair.plugins.module_utils.render import digest
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor import events, statefile
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.act import Doer
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.client import Client, ClientError
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.config import Config, parse_config
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.main import Inbox, Loop
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.nodes import NodeError
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.smoke import Reply
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.state import State, fresh
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device

PLANS = ["sha256:rank0", "sha256:rank1"]
PAIR: dict[str, Any] = {
    "schema": 1,
    "pair": "pair1",
    "engine": "tensorfold",
    "release": "v1.1",
    "served_name": "GLM",
    "ranks": [
        {"rank": 0, "name": "spark-a", "address": None},
        {"rank": 1, "name": "spark-b", "address": "192.0.2.12", "user": "twinserve"},
    ],
    "rails": "auto",
    "comm": "roce",
    "max_rails": 2,
    "api": {"host": "127.0.0.1", "port": 8888, "bind": "127.0.0.1"},
    "start_order": [1, 0],
    "stop_order": "together",
    "wait_timeout": 1800,
    "stop_timeout": 30,
    "drain_timeout": 0,
    "restart_limit": 3,
    "restart_window": 3600,
    "canary_interval": 60,
    "hang_limit": 900,
    "patterns": {
        "refit": r"(?:requested context (?P<requested>\d+).*)?largest fitting prompt-plus-reply window: "
        r"(?P<window>\d+) tokens",
        "retry": ["NCCL error 2: unhandled system error"],
        "progress": [
            r"(?P<step>loading .+):",
            r"startup estimate (?P<estimate_gib>[\d.]+) GiB",
            r"(?P<step>drafter timings)",
        ],
        "failures": [
            {"pattern": "cannot fit requested context", "cure": "free memory on both nodes"},
            {"pattern": "different settings", "cure": "run serve.yml", "refusal": True},
            {"pattern": "NCCL error 2", "cure": "set split: false"},
        ],
        "alarms": [],
    },
    "refit_append": ["--context", "{window}"],
    "retry_env": {"TF_GLM_HC_SPLIT": "0", "TF_GLM_PREFILL_OVERLAP": "0"},
    "smoke": {"prompt": "Reply with OK.", "max_tokens": 32, "extra": {"temperature": 0}},
    "digest": digest(PLANS),
}


def config(**changes: Any) -> Config:
    """The pair's configuration with some fields changed."""
    return parse_config({**PAIR, **changes})


@dataclass(frozen=True)
class Start:
    """How one start of a rank goes: it dies `dies` seconds after it began, with this code and these lines."""

    dies: float | None = None
    code: int = 1
    log: tuple[str, ...] = ("loading",)
    error: str | None = None


@dataclass
class FakeRank:
    """The agent of one rank, as the supervisor calls it."""

    world: World
    rank: int
    devices: list[Device]
    script: list[Start] = field(default_factory=list)
    reachable: bool = True
    version: str = "1"
    plan: Mapping[str, Any] | None = None
    container: dict[str, Any] | None = None
    unit: str = "inactive"
    exit_code: int | None = None
    log: list[str] = field(default_factory=list)
    began: float = 0.0
    current: Start = Start()
    calls: list[str] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)
    dead_targets: set[str] = field(default_factory=set)
    reached: list[list[dict[str, Any]]] = field(default_factory=list)
    gpu_gib: float | None = None
    memory_gib: float | None = None
    available_gib: float = 110.0
    expected: list[dict[str, Any]] = field(default_factory=list)
    hindrances: list[str] = field(default_factory=list)
    pcie_error: str | None = None
    dark: list[str] = field(default_factory=list)
    starved: str | None = None
    warnings: list[str] = field(default_factory=list)

    def call(self, words: Sequence[str], stdin: str, timeout: float) -> str:
        """Answer a verb."""
        if not self.reachable:
            raise NodeError("unreachable by ssh (exit 255): Connection timed out")
        self.advance()
        if words[0] != "state":
            self.calls.append(words[0])
        answer = getattr(self, f"_{words[0]}")(stdin)
        return answer if isinstance(answer, str) else json.dumps(answer)

    def advance(self) -> None:
        """Die when the script says so."""
        dies = self.current.dies
        if self.unit == "active" and dies is not None and self.world.now >= self.began + dies:
            self.die(self.current.code)

    def die(self, code: int = 137) -> None:
        """End the container, as a crash does."""
        self.unit, self.exit_code, self.container = "failed", code, None

    def run(self, plan: str | None = None) -> None:
        """Be running already, before the supervisor looks."""
        self.unit, self.began, self.current = "active", self.world.now - 1000, Start()
        self.container = self._made(plan or PLANS[self.rank])

    def _made(self, plan: str) -> dict[str, Any]:
        self.world.made += 1
        return {"id": f"c{self.world.made}", "running": True, "started_at": "x", "digest": plan}

    def _report(self, _stdin: str) -> dict[str, Any]:
        plan = {"digest": PLANS[self.rank], "image": "i", "container": "glm", "expected_link": self.expected}
        return {
            "version": self.version,
            "hostname": self.rank,
            "boot_id": "b",
            "devices": [device.as_dict() for device in self.devices],
            "pcie_error": self.pcie_error,
            "memory": {"total_gib": 120, "available_gib": self.available_gib},
            "plan": plan if self.plan is None else self.plan,
            "container": self.container,
            "link": self.links[-1] if self.links else None,
            "hindrances": self.hindrances,
        }

    def _start(self, stdin: str) -> dict[str, Any]:
        self.links.append(json.loads(stdin))
        self.current = self.script.pop(0) if self.script else Start()
        if self.current.error:
            raise NodeError(self.current.error)
        self.unit, self.exit_code, self.began = "active", None, self.world.now
        self.log = list(self.current.log)
        self.container = self._made(PLANS[self.rank])
        return self.container

    def _stop(self, _stdin: str) -> dict[str, Any]:
        self.unit, self.container, self.exit_code = "inactive", None, None
        return {"stopped": True}

    _kill = _stop

    def _state(self, _stdin: str) -> dict[str, Any]:
        return {
            "unit": self.unit,
            "container": self.container,
            "exit_code": self.exit_code,
            "gpu_gib": self.gpu_gib,
            "memory_gib": self.memory_gib,
            "dark": self.dark,
            "starved": self.starved,
            "warnings": self.warnings,
            "log": self.log[-20:],
        }

    def _logs(self, _stdin: str) -> str:
        return "\n".join(self.log)

    def _reach(self, stdin: str) -> list[dict[str, Any]]:
        self.reached.append(json.loads(stdin))
        return [
            {
                "netdev": one["netdev"],
                "target": one["target"],
                "ok": one["target"] not in self.dead_targets,
                "detail": "none",
            }
            for one in self.reached[-1]
        ]


class FakeApi(Client):
    """The head's API: it listens once both ranks have loaded, and goes on answering when the peer is dead."""

    def __init__(self, world: World) -> None:
        super().__init__("127.0.0.1", 1)
        self.world = world
        self.load_time = 20.0
        self.replies: list[Reply | str] = []
        self.hangs = False
        self.asked = 0
        self.health: dict[str, Any] = {
            "completion_tokens_total": 0,
            "requests_running": 0,
            "context_length": 1048576,
            "pool_tokens": 2684928,
        }

    @property
    def up(self) -> bool:
        """Whether the head listens."""
        head = self.world.ranks[0]
        return (
            head.unit == "active"
            and self.world.now >= max(r.began for r in self.world.ranks) + self.load_time
        )

    def look(self, served_name: str) -> dict[str, Any]:
        """Models and counters."""
        if not self.up:
            raise ClientError("/v1/models: Connection refused")
        return {"model": served_name, "health": dict(self.health)}

    def ask(self, model: str, smoke: Mapping[str, Any], timeout: float) -> Reply:
        """Answer the next of `replies`, else OK."""
        self.asked += 1
        if not self.up:
            raise ClientError("/v1/chat/completions: Connection refused")
        reply = self.replies.pop(0) if self.replies else Reply(200, "OK")
        if isinstance(reply, str):
            raise ClientError(reply)
        self.health["completion_tokens_total"] += 1
        if "requests_total" in self.health:
            self.health["requests_total"] += 1
        return reply


class World:
    """The pair, the supervisor's loop, and time."""

    def __init__(self, **changes: Any) -> None:
        self.now = 1000.0
        self.made = 0
        self.config = config(**changes)
        self.ranks = [FakeRank(self, 0, fake_pair.head()), FakeRank(self, 1, fake_pair.worker())]
        self.api = FakeApi(self)
        self.said: list[str] = []
        self.shown: list[dict[str, Any]] = []
        self.parked: list[events.Action] = []
        self.over = False
        self.supervise()

    def supervise(self, state: State | None = None) -> None:
        """Start a supervisor; an earlier one is gone without a word."""
        self.inbox: Inbox = queue.SimpleQueue()
        self.doer = Doer(self.config, self.ranks, self.api)
        self.parked = []
        state = state or fresh(self.config, self.now, self.wall())
        self.loop = Loop(
            state, self.inbox, self.submit, self.show, self.said.append, lambda: self.now, self.wall
        )

    def wall(self) -> str:
        """Wall time, in step with the clock."""
        return f"t{self.now:.0f}"

    def submit(self, action: events.Action) -> None:
        """Do an action at once; a request to a pair that hangs stays without an answer."""
        peer_dead = any(rank.unit != "active" for rank in self.ranks)
        if isinstance(action, events.Ask) and self.api.up and (self.api.hangs or peer_dead):
            self.parked.append(action)
            return
        self.inbox.put(self.doer.do(action))

    def show(self, state: State, now: float) -> None:
        """Keep what people see."""
        document = statefile.document(state, now)
        if not self.shown or document != self.shown[-1]:
            self.shown.append(document)

    def run(self, seconds: float, tick: float = 0.25) -> dict[str, Any]:
        """Let time pass; returns the last state file."""
        end = self.now + seconds
        while not self.over and self.now < end:
            self.over = not self.loop.turn(0)
            self.now += tick
        return self.shown[-1]

    def until(self, *states: str, limit: float = 600.0) -> dict[str, Any]:
        """Let time pass until one of these states is shown."""
        end = self.now + limit
        while self.now < end and not self.over:
            if self.run(0.25)["state"] in states:
                return self.shown[-1]
        raise AssertionError(f"no {states} within {limit} s: {self.shown[-1]}, {self.said}")

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.inbox.put(None)

    @property
    def calls(self) -> list[list[str]]:
        """The verbs that each rank was asked for, without the looks."""
        return [rank.calls for rank in self.ranks]

    def states(self) -> list[str]:
        """The states that were shown, each once in a row."""
        names = [document["state"] for document in self.shown]
        return [name for number, name in enumerate(names) if number == 0 or names[number - 1] != name]

    def heard(self, text: str) -> bool:
        """Whether the journal has a line with this text."""
        return any(text in line for line in self.said)
