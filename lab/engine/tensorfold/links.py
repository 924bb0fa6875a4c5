"""Starting the transports between the ranks: NCCL before the weights, the RoCE all-gather after them."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .channel import Channel
from .fabric import FabricError, Rail, connect_over, listen_on, open_rails, socket_interface_error
from .log import log
from .settings import Settings
from .switches import Switches

SETUP = "RoCE all-gather setup failed on some rank"
SYSTEM_ERROR = "NCCL error 2: unhandled system error"


@dataclass(frozen=True)
class Pair:
    """One rail in use: this rank's end and the other's."""

    mine: Rail
    theirs: Rail


def start_nccl(settings: Settings, channel: Channel, switches: Switches, root: Path) -> list[Pair]:
    """Bootstrap NCCL; with TF_GLM_COMM=nccl also its rails. RuntimeError on both ranks if either cannot."""
    error = socket_interface_error(settings.env, root)
    found = f"NCCL error 5: invalid usage ({error})" if error else _injected_nccl(settings, switches)
    theirs = channel.exchange({"nccl": found})["nccl"]
    if found or theirs:
        raise RuntimeError(found or theirs)
    mine, error = ([], "switched off") if switches.get("nccl_over_tcp") else _rails(settings, root)
    _say_network(settings.env, mine, error)
    if settings.comm == "roce":
        return []
    return _nccl_rails(settings, channel, mine)


def _injected_nccl(settings: Settings, switches: Switches) -> str | None:
    rule = switches.get("nccl_error")
    if isinstance(rule, dict) and rule.get("only_split") and not settings.split:
        return None
    struck = switches.strike("nccl_error")
    if struck is None:
        return None
    if "warn" in struck and _debug(settings.env) in ("WARN", "INFO", "TRACE"):
        print(f"NCCL WARN {struck['warn']}", flush=True)
    return SYSTEM_ERROR


def _debug(env: Mapping[str, str]) -> str:
    return env.get("NCCL_DEBUG", "").upper()


def _say_network(env: Mapping[str, str], rails: list[Rail], error: str | None) -> None:
    """What NCCL runs over, in its own log and nowhere else."""
    if _debug(env) not in ("INFO", "TRACE"):
        return
    netdev = env.get("NCCL_SOCKET_IFNAME", "eth0")
    if rails:
        using = " ".join(f"[{number}]{rail.hca}:1/RoCE" for number, rail in enumerate(rails))
        lines = [f"NET/IB : Using {using} [RO]; OOB {netdev}:{rails[0].address}<0>", "Using network IB"]
    else:
        lines = [f"NET/IB : No device found. {error or ''}".rstrip()]
        lines += [f"NET/Socket : Using [0]{netdev}", "Using network Socket"]
    for line in lines:
        print(f"NCCL INFO {line}", flush=True)


def _nccl_rails(settings: Settings, channel: Channel, mine: list[Rail]) -> list[Pair]:
    """NCCL without a usable device on either rank goes over sockets."""
    theirs = channel.exchange({"rails": _plain(mine)})["rails"]
    if not mine or not theirs:
        return []
    pairs = [Pair(a, Rail(**b)) for a, b in zip(mine, theirs, strict=False)]
    failed = _connect_all(settings.rank, pairs, channel)
    if failed:
        raise RuntimeError(f"{SYSTEM_ERROR} ({failed})")
    return pairs


def start_gather(settings: Settings, channel: Channel, switches: Switches, root: Path) -> list[Pair]:
    """Connect every rail; RuntimeError on both ranks, with the rank and device at fault."""
    mine, error = _rails(settings, root)
    forced = switches.strike("roce_error")
    if forced is not None:
        error = str(forced.get("message", "hca simulated: errno 61"))
    theirs = channel.exchange({"rails": _plain(mine), "error": error})
    both = (error, theirs["error"]) if settings.rank == 0 else (theirs["error"], error)
    faults = [f"rank {rank}: {text}" for rank, text in enumerate(both) if text]
    if faults:
        raise RuntimeError(f"{SETUP}: {'; '.join(faults)}")
    others = [Rail(**rail) for rail in theirs["rails"]]
    if len(mine) != len(others):
        counts = (len(mine), len(others)) if settings.rank == 0 else (len(others), len(mine))
        raise RuntimeError(f"{SETUP}: rank 0 has {counts[0]} devices, rank 1 has {counts[1]}")
    pairs = [Pair(a, b) for a, b in zip(mine, others, strict=True)]
    failed = _connect_all(settings.rank, pairs, channel)
    if failed:
        raise RuntimeError(f"RoCE all-gather could not connect: {failed}")
    log(f"RoCE all-gather over {', '.join(f'{pair.mine.hca} to {pair.theirs.hca}' for pair in pairs)}")
    return pairs


def _rails(settings: Settings, root: Path) -> tuple[list[Rail], str | None]:
    try:
        return open_rails(settings.env, root), None
    except FabricError as error:
        return [], str(error)


def _plain(rails: list[Rail]) -> list[dict[str, Any]]:
    return [{"hca": rail.hca, "netdev": rail.netdev, "address": rail.address} for rail in rails]


def _connect_all(rank: int, pairs: list[Pair], channel: Channel) -> str | None:
    """Rank 0 listens on each rail, rank 1 connects: why that failed, or None; the same on both."""
    if rank == 1:
        ports = channel.receive()["ports"]
        mine = _call_all(pairs, ports)
        theirs: str | None = channel.exchange({"failed": mine})["failed"]
        return theirs or mine
    listeners, mine = _listen_all(pairs)
    channel.send({"ports": [listener.getsockname()[1] for listener in listeners]})
    theirs = channel.exchange({"failed": mine})["failed"]
    for listener in listeners:  # the kernel has completed the peer's connections; nobody needs to accept them
        listener.close()
    return mine or theirs


def _listen_all(pairs: list[Pair]) -> tuple[list[socket.socket], str | None]:
    try:
        return [listen_on(pair.mine) for pair in pairs], None
    except FabricError as error:
        return [], f"rank 0: {error}"


def _call_all(pairs: list[Pair], ports: list[int]) -> str | None:
    for pair, port in zip(pairs, ports, strict=False):  # no ports: rank 0 failed and says so
        try:
            connect_over(pair.mine, pair.theirs, port).close()
        except FabricError as error:
            return f"rank 1: {error}"
    return None
