"""`tensorfold serve`: one rank from its command line to its end."""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import agreement, links, memory
from .api.server import open_api
from .channel import Channel, Store, join, reach_own_store
from .engine import Engine, Shape
from .gpu import GpuFigure, require_gpu
from .log import log
from .model import Checkpoint, check_shards, find_drafter, open_checkpoint
from .peer import Peer
from .settings import NATIVE_WINDOW, Settings, read_settings, refuse_options
from .switches import Switches

STEPS = 20


@dataclass(frozen=True)
class Started:
    """A rank that has met its peer: everything that was decided before the weights are read."""

    settings: Settings
    checkpoint: Checkpoint
    switches: Switches
    channel: Channel
    window: int
    need: memory.Need
    root: Path


def serve(arguments: argparse.Namespace, env: Mapping[str, str], root: Path) -> int:
    """Run one rank until it ends; the exit status. Refusals are ValueError, failures RuntimeError."""
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)
    switches = Switches(root / "lab", arguments.rank)
    switches.check()
    crash = switches.strike("crash_at_start")
    if crash is not None:
        raise RuntimeError(str(crash.get("message", "CUDA error: unspecified launch failure")))
    refuse_options(arguments)
    checkpoint = open_checkpoint(Path(arguments.model))
    drafter = find_drafter(arguments.drafter, Path(env.get("HF_HOME", "/root/.cache/huggingface")))
    settings = read_settings(arguments, env, checkpoint.name, drafter is not None)
    require_gpu(env, root)
    gpu = GpuFigure(root / "lab", settings.rank)
    try:
        time.sleep(switches.get("import_seconds"))  # until then the lab has taken back what was held before
        log(f"loading {settings.name}: GLM-5.3-Flash (glm5_next) on CUDA, rank {settings.rank} of 2")
        log("note: EXL3 checkpoints are experimental")
        began = time.monotonic()
        started = _meet(settings, checkpoint, drafter, switches, root)
        rails = _load(started, gpu)
        if settings.rank == 1:
            return _follow(started, time.monotonic() - began)
        return _lead(started, rails, time.monotonic() - began)
    finally:
        gpu.clear()


def _meet(
    settings: Settings, checkpoint: Checkpoint, drafter: Path | None, switches: Switches, root: Path
) -> Started:
    """Rendezvous, agree on everything, admit the window."""
    channel = _rendezvous(settings, switches.get("rendezvous_wait_s"))
    need = memory.need_of(settings, memory.available_gib(root))
    forced = switches.strike("refuse_window")
    mine = agreement.statement(
        settings,
        drafter,
        need,
        _fault(checkpoint.path, drafter),
        forced["value"] if forced is not None else None,
    )
    window = agreement.agree(settings.rank, mine, channel.exchange(mine))
    log(
        f"CUDA rank {settings.rank} startup estimate {need.estimate(window):.2f} GiB "
        f"within {need.budget:.2f} GiB; native {NATIVE_WINDOW}, allocated prompt/reply window {window}, "
        f"cache slots {settings.cache_slots}"
    )
    _settings_lines(settings)
    return Started(settings, checkpoint, switches, channel, window, need, root)


def _rendezvous(settings: Settings, seconds: float) -> Channel:
    if settings.rank == 1:
        return join(settings.master, settings.master_port, seconds)
    store = Store(settings.master_port)
    reach_own_store(settings.master, settings.master_port, seconds)
    return store.wait_for_peer(seconds)


def _fault(model: Path, drafter: Path | None) -> str | None:
    """What is wrong with the weights on this machine, in words, or None."""
    for path in (model, drafter):
        try:
            if path is not None:
                check_shards(path)
        except (ValueError, OSError, KeyError) as error:
            return str(error)
    return None


def _settings_lines(settings: Settings) -> None:
    env = settings.env
    log(f"TF_GLM_KV={settings.kv}: the latent cache is kept in {settings.kv}")
    log(f"dense weights in {settings.dense}; gathers over {settings.comm}")
    if settings.split:
        log(f"TF_GLM_HC_SPLIT=1, prefill overlap {env.get('TF_GLM_PREFILL_OVERLAP', '0')}")
    if env.get("TF_GLM_COPY_DRAFTS") == "1":
        log(f"copy drafts up to {env.get('TF_GLM_COPY_MAX', '15')} tokens; verify windows 8 and 16")
    if env.get("TF_GLM_SHARED_PREFIX") == "1":
        log("shared-prefix attention: on")


def _load(started: Started, gpu: GpuFigure) -> list[links.Pair]:
    """NCCL, then the weights, then the all-gather over the rails, in the engine's order."""
    settings, switches = started.settings, started.switches
    pairs = links.start_nccl(settings, started.channel, switches, started.root)
    full = started.need.estimate(started.window)
    for step in range(1, STEPS + 1):
        time.sleep(switches.get("load_seconds") / STEPS)
        gpu.show(full * step / STEPS)
    while switches.get("hang_load"):
        time.sleep(0.2)
    if settings.comm == "roce":
        pairs = links.start_gather(settings, started.channel, switches, started.root)
    if settings.drafts:
        log("drafter timings (ms, rows 1/8/16): 4.1 4.6 5.3")
        log("drafter costs (ms): draft 1.9, verify 21.4")
    if settings.vision and settings.rank == 0:
        log(f"vision: image and video input, a {memory.VISION_TOWER:.2f} GiB tower")
    return pairs


def _follow(started: Started, seconds: float) -> int:
    """Rank 1: say ready, then answer every step until rank 0 is gone, which is an error."""
    log(f"rank 1 ready in {seconds:.1f}s, following rank 0")
    started.channel.exchange({"ready": 1, "pool": _pool(started)})
    _arm_crash(started.switches)
    while True:
        started.channel.send({"done": started.channel.receive()["step"]})


def _pool(started: Started) -> int:
    return memory.pool_tokens(started.settings, started.need, started.window)


def _lead(started: Started, rails: list[links.Pair], seconds: float) -> int:
    """Rank 0: open the API once rank 1 is ready, serve until SIGTERM or Ctrl-C."""
    settings = started.settings
    theirs = started.channel.exchange({"ready": 0})
    pool = min(_pool(started), theirs["pool"])
    if settings.parallel > 1:
        log(
            f"--parallel {settings.parallel}: up to {settings.parallel} requests decode together, their "
            f"caches in one pool of {pool} tokens (each up to {started.window})"
        )
    stopped = threading.Event()
    if not started.switches.get("ignore_sigterm"):
        signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    signal.signal(signal.SIGINT, lambda *_: stopped.set())
    peer = Peer(started.channel, started.switches, rails[0].mine.hca if rails else "none")
    server = open_api(
        Engine(_shape(settings, started.window, pool), peer, started.switches), settings.host, settings.port
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    log(
        f"serving {settings.name} at http://{settings.host}:{settings.port}/v1 on CUDA, rank 0 of 2 "
        f"(sampling: {_sampling({**started.checkpoint.sampling, **settings.sampling})}; "
        f"drafts: {'on' if settings.drafts else 'off'}; "
        f"context: {started.window}; loaded in {seconds:.1f}s)"
    )
    _arm_crash(started.switches)
    stopped.wait()
    return 0


def _shape(settings: Settings, window: int, pool: int) -> Shape:
    return Shape(
        name=settings.name,
        window=window,
        pool=pool,
        parallel=settings.parallel,
        max_tokens=settings.max_tokens,
        thinking=settings.thinking,
        effort=settings.effort,
        vision=settings.vision,
        vision_urls=settings.vision_urls,
        slots=settings.cache_slots,
        multi_prefill=settings.env.get("TF_GLM_MULTI_PREFILL") == "1",
    )


def _sampling(defaults: Mapping[str, Any]) -> str:
    known = [
        f"{key} {defaults[key]}" for key in ("temperature", "top_p", "top_k", "min_p") if key in defaults
    ]
    return ", ".join(known) or "greedy"


def _arm_crash(switches: Switches) -> None:
    after = switches.get("crash_after_ready_s")
    if after is not None:
        timer = threading.Timer(float(after), os._exit, (int(switches.get("exit_code")),))
        timer.daemon = True
        timer.start()
