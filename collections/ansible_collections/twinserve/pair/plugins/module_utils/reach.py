"""Proof that a rail carries full-size packets: one unfragmentable ping, bound to the port."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

# IPv4 and ICMP headers: what a ping of the MTU's size cannot carry as payload.
_HEADERS = 28
_ATTEMPTS = 2


@dataclass(frozen=True)
class Target:
    """Where to send, from which port, and the port's MTU in bytes."""

    netdev: str
    target: str
    mtu: int


@dataclass(frozen=True)
class Reached:
    """Whether the target answered at full size; `detail` is for people."""

    netdev: str
    target: str
    ok: bool
    detail: str

    def as_dict(self) -> dict[str, Any]:
        """Return the result as the agent reports it."""
        return asdict(self)


Ping = Callable[[Sequence[str]], tuple[int, str]]


def ping_argv(target: Target) -> list[str]:
    """Return the command. Bound to the port: by address, twins in one subnet would answer for each other."""
    size = target.mtu - _HEADERS
    options = ["-M", "do", "-s", str(size), "-c", "1", "-W", "1", "-n", "-I", target.netdev]
    return ["ping", *options, target.target]


def parse_ping(target: Target, code: int, text: str) -> Reached:
    """Judge ping's answer: its exit code decides, its text says why."""
    size = target.mtu - _HEADERS
    if code == 0:
        return Reached(target.netdev, target.target, True, f"{size} bytes unfragmented")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    known = (
        "message too long",
        "Frag needed",
        "Unreachable",
        "unreachable",
        "unknown iface",
        "bind",
        "SO_BINDTODEVICE",
    )
    reason = next((line for line in lines if any(word in line for word in known)), "no answer within 1 s")
    return Reached(target.netdev, target.target, False, f"{size} bytes unfragmented: {reason}")


def reach(targets: Sequence[Target], ping: Ping | None = None) -> list[Reached]:
    """Ping all targets at once, each at most twice: the first packet of a fresh link may be lost."""
    if not targets:
        return []
    send = ping or _ping
    with ThreadPoolExecutor(max_workers=len(targets)) as pool:
        return list(pool.map(lambda target: _one(target, send), targets))


def _one(target: Target, ping: Ping) -> Reached:
    result = parse_ping(target, *ping(ping_argv(target)))
    for _ in range(_ATTEMPTS - 1):
        if not result.ok:
            result = parse_ping(target, *ping(ping_argv(target)))
    return result


def _ping(argv: Sequence[str]) -> tuple[int, str]:
    try:
        done = subprocess.run(list(argv), capture_output=True, text=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return 1, ""
    except FileNotFoundError:
        return 127, "ping: not installed, Unreachable"
    return done.returncode, done.stdout + done.stderr
