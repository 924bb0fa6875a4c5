"""Two ranks of the simulated engine as real processes, each in a made-up machine of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from twinlab.services.models import DRAFTER, MODEL, make_models

ENGINE = Path(__file__).resolve().parents[2] / "lab/engine"
DRIVER = """
import sys
from pathlib import Path
from tensorfold.cli import main
sys.exit(main(sys.argv[2:], Path(sys.argv[1])))
"""
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "NCCL_IB_GID_INDEX": "3",
    "NCCL_IB_HCA": "rocep1s0f0,roceP2p1s0f0",
    "NCCL_SOCKET_IFNAME": "lo",
    "NVIDIA_VISIBLE_DEVICES": "all",
    "TENSORFOLD_MEMORY_RESERVE_GIB": "14.5",
    "TENSORFOLD_NO_UPDATE_CHECK": "1",
    "TF_GLM_CACHE_GIB": "11",
    "TF_GLM_COMM": "roce",
    "TF_GLM_COPY_DRAFTS": "1",
    "TF_GLM_COPY_MAX": "15",
    "TF_GLM_DENSE": "q4",
    "TF_GLM_DFLASH_POLICY": "fnc7:0.3",
    "TF_GLM_HC_SPLIT": "1",
    "TF_GLM_KV": "fp8",
    "TF_GLM_MULTI_PREFILL": "1",
    "TF_GLM_PREFILL_OVERLAP": "2",
    "TF_GLM_SHARED_PREFIX": "1",
}


def free_port() -> int:
    """A loopback port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Machine:
    """A root directory with what the engine reads of a machine: memory, RDMA devices, switches."""

    def __init__(self, root: Path, available_gib: float = 115.0) -> None:
        self.root = root
        for folder in ("proc", "lab", "dev/infiniband", "sys/class/net/lo"):
            (root / folder).mkdir(parents=True)
        self.memory(available_gib)
        for name in ("rocep1s0f0", "roceP2p1s0f0"):
            self.device(name)

    def memory(self, available_gib: float) -> None:
        """Set MemAvailable."""
        kib = int(available_gib * 2**20)
        (self.root / "proc/meminfo").write_text(
            f"MemTotal: 125829120 kB\nMemFree: 1 kB\nMemAvailable: {kib} kB\n"
        )

    def device(
        self,
        name: str,
        address: str = "127.0.0.1",
        index: int = 3,
        kind: str = "RoCE v2",
        state: str = "4: ACTIVE",
    ) -> None:
        """Make a RoCE device with one IPv4 GID."""
        port = self.root / "sys/class/infiniband" / name / "ports/1"
        for folder in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
            (port / folder).mkdir(parents=True, exist_ok=True)
        (port / "state").write_text(state + "\n")
        one, two, three, four = (int(part) for part in address.split("."))
        rows = {
            0: ("fe80:0000:0000:0000:4ebb:47ff:fe00:0001", "IB/RoCE v1"),
            1: ("fe80:0000:0000:0000:4ebb:47ff:fe00:0001", "RoCE v2"),
        }
        rows[index] = (f"0000:0000:0000:0000:0000:ffff:{one:02x}{two:02x}:{three:02x}{four:02x}", kind)
        for slot, (gid, typed) in rows.items():
            (port / f"gids/{slot}").write_text(gid + "\n")
            (port / f"gid_attrs/types/{slot}").write_text(typed + "\n")
            (port / f"gid_attrs/ndevs/{slot}").write_text("lo\n")

    def switch(self, **switches: Any) -> None:
        """Set the lab's switches on this machine."""
        new = self.root / "lab/.switches.json.new"
        new.write_text(json.dumps({"import_seconds": 0, "load_seconds": 0.2, **switches}))
        new.rename(self.root / "lab/switches.json")  # a running engine never sees half a file


class Rank:
    """One running rank; its output is in a file."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    def log(self) -> str:
        """What it has printed, both streams together."""
        return self._log.read_text()

    def wait(self, seconds: float = 30) -> int:
        """Its exit status."""
        return self.process.wait(seconds)

    def until(self, text: str, seconds: float = 30) -> None:
        """Wait for a text in the log."""
        deadline = time.monotonic() + seconds
        while text not in self.log():
            assert self.process.poll() is None, f"ended before {text!r}:\n{self.log()}"
            assert time.monotonic() < deadline, f"no {text!r} in:\n{self.log()}"
            time.sleep(0.02)


class Pair:
    """Two machines, the ports between them, and how to start and ask their engine."""

    def __init__(self, root: Path, models: Path) -> None:
        self.root = root
        self.model = models / MODEL.name
        self.drafter = models / DRAFTER.name
        self.machines = (Machine(root / "a"), Machine(root / "b"))
        self.api = free_port()
        self.store = free_port()
        self.ranks: list[Rank] = []
        for machine in self.machines:
            machine.switch()

    def words(
        self, rank: int, *extra: str, drafter: str | None = None, vision: bool = True, parallel: str = "4"
    ) -> list[str]:
        """The command line of a rank."""
        head = ["--name", "sim", "--host", "127.0.0.1", "--port", str(self.api)] if rank == 0 else []
        shared = [
            "--drafter",
            drafter or str(self.drafter),
            "--context",
            "1048576",
            "--parallel",
            parallel,
            "--thinking",
        ]
        master = ["--tp", "2", "--rank", str(rank), "--master", "127.0.0.1", "--master-port", str(self.store)]
        return ["serve", str(self.model), *master, *head, *shared, *(["--vision"] if vision else []), *extra]

    def start(
        self, rank: int, *extra: str, env: dict[str, str | None] | None = None, words: list[str] | None = None
    ) -> Rank:
        """Start one rank; `env` adds to the usual environment, None removes."""
        merged = {**ENVIRONMENT, **(env or {}), "PYTHONPATH": str(ENGINE), "PATH": os.environ["PATH"]}
        given = {key: value for key, value in merged.items() if value is not None}
        command = [
            sys.executable,
            "-c",
            DRIVER,
            str(self.machines[rank].root),
            *(words or self.words(rank, *extra)),
        ]
        log = self.root / f"rank{rank}-{len(self.ranks)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, env=given)
        self.ranks.append(Rank(process, log))
        return self.ranks[-1]

    def up(self, *extra: str, env: dict[str, str | None] | None = None) -> tuple[Rank, Rank]:
        """Start both, rank 1 first, and wait until the API answers."""
        one = self.start(1, *extra, env=env)
        zero = self.start(0, *extra, env=env)
        zero.until("serving ")
        return zero, one

    def ask(
        self, path: str, body: Any = None, method: str | None = None, seconds: float = 60
    ) -> tuple[int, Any]:
        """Status and JSON (or text) of one request."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.api}{path}", data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        return status, json.loads(text) if text[:1] in ("{", "[") else text

    def chat(self, prompt: str, **fields: Any) -> dict[str, Any]:
        """The answer to one message without thinking, unless the fields say otherwise."""
        body = {"messages": [{"role": "user", "content": prompt}], "reasoning_effort": "none", **fields}
        status, answer = self.ask("/v1/chat/completions", body)
        assert status == 200, answer
        return dict(answer)

    def events(self, path: str, body: dict[str, Any]) -> tuple[list[Any], str]:
        """The JSON events of a stream and the raw text."""
        data = json.dumps({**body, "stream": True}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.api}{path}", data)
        with urllib.request.urlopen(request, timeout=60) as answer:
            raw = answer.read().decode()
        lines = [line[6:] for line in raw.splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line != "[DONE]"], raw

    def down(self) -> None:
        """End what still runs."""
        for rank in self.ranks:
            if rank.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    rank.process.send_signal(signal.SIGKILL)
                rank.process.wait()


@contextlib.contextmanager
def running_pair(root: Path) -> Iterator[Pair]:
    """A pair that is taken down at the end, with its own models."""
    models = root / "models"
    make_models(models, shard_bytes=4096)
    pair = Pair(root, models)
    try:
        yield pair
    finally:
        pair.down()
