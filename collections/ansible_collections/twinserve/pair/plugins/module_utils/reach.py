"""Proof that a rail carries full-size packets: several unfragmentable pings, bound to the port.

Where two ports of a node are in one subnet, the kernel answers a ping through the first of them, whichever
port it came in by; there an ARP request is sent, which is answered on the port that it reaches.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from . import arp

# IPv4 and ICMP headers: what a ping of the MTU's size cannot carry as payload.
_HEADERS = 28
# Packets of a try, seconds between them, and tries.
COUNT, _EVERY, _ATTEMPTS = 5, 0.02, 2


@dataclass(frozen=True)
class Target:
    """Where to send, from which port, and the port's MTU in bytes.

    `arp_from` is the port's own address where ping cannot judge; `mac` is then the port that must answer.
    """

    netdev: str
    target: str
    mtu: int
    arp_from: str = ""
    mac: str = ""


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
Arp = Callable[[arp.Question, int, float], arp.Answer]


def payload(targets: Sequence[Target]) -> str:
    """Return what is sent to these targets of one port: `8972 bytes`, or `9000 bytes by ARP`."""
    words = [f"{one.mtu} bytes by ARP" if one.arp_from else f"{one.mtu - _HEADERS} bytes" for one in targets]
    return words[0] if words else ""


def ping_argv(target: Target) -> list[str]:
    """Return the command. Bound to the port: by address, twins in one subnet would answer for each other."""
    size, count = str(target.mtu - _HEADERS), ["-c", str(COUNT), "-i", str(_EVERY)]
    return ["ping", "-M", "do", "-s", size, *count, "-W", "1", "-n", "-I", target.netdev, target.target]


def parse_ping(target: Target, code: int, text: str) -> Reached:
    """Judge ping's answer: every packet must have been answered; its text says why one was not."""
    size = f"{target.mtu - _HEADERS} bytes unfragmented"
    counted = re.search(r"(\d+) received", text)
    answered = int(counted[1]) if counted else 0
    if code == 0 and answered >= COUNT:
        return Reached(target.netdev, target.target, True, size)
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
    said = next((line for line in lines if any(word in line for word in known)), _shortfall(answered))
    reason = re.sub(r"^From \S+ icmp_seq=\d+ ", "", said)
    return Reached(target.netdev, target.target, False, f"{size}: {reason}")


def judge_arp(target: Target, answer: arp.Answer) -> Reached:
    """Judge what came back for full-size ARP requests."""
    size = f"{target.mtu} bytes by ARP"
    if answer.count >= COUNT:
        return Reached(target.netdev, target.target, True, size)
    return Reached(
        target.netdev, target.target, False, f"{size}: {answer.problem or _shortfall(answer.count)}"
    )


def _shortfall(answered: int) -> str:
    return f"{answered} of {COUNT} packets answered" if answered else "no answer within 1 s"


def reach(targets: Sequence[Target], ping: Ping | None = None, ask: Arp | None = None) -> list[Reached]:
    """Try all targets at once, each at most twice: the first packets of a fresh link may be lost."""
    if not targets:
        return []
    with ThreadPoolExecutor(max_workers=len(targets)) as pool:
        return list(pool.map(lambda target: _one(target, ping or _ping, ask or arp.ask), targets))


def _one(target: Target, ping: Ping, ask: Arp) -> Reached:
    result = _try(target, ping, ask)
    for _ in range(_ATTEMPTS - 1):
        if not result.ok:
            result = _try(target, ping, ask)
    return result


def _try(target: Target, ping: Ping, ask: Arp) -> Reached:
    if not target.arp_from:
        return parse_ping(target, *ping(ping_argv(target)))
    question = arp.Question(target.netdev, target.arp_from, target.target, target.mtu, target.mac)
    return judge_arp(target, ask(question, COUNT, _EVERY))


def _ping(argv: Sequence[str]) -> tuple[int, str]:
    try:
        done = subprocess.run(list(argv), capture_output=True, text=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return 1, ""
    except FileNotFoundError:
        return 127, "ping: not installed, Unreachable"
    return done.returncode, done.stdout + done.stderr
