"""ARP requests as long as the MTU, sent and answered on one port. Needs root.

A request is padded with zeros, which the peer ignores; a frame that is longer than its MTU it never sees.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from ipaddress import IPv4Address

_PROTOCOL = 0x0806
_ETHERNET = struct.Struct("!6s6sH")
# Hardware and protocol (Ethernet, IPv4), their lengths, operation, then MAC and address of sender and target.
_BODY = struct.Struct("!HHBBH6s4s6s4s")
_REQUEST, _REPLY = 1, 2
_EVERYONE = b"\xff" * 6
_LAST_WAIT = 1.0


@dataclass(frozen=True)
class Question:
    """Who has `target`, asked on port `netdev` from its address `own` with frames of `mtu` bytes.

    With `mac` only that port is asked, and only its answer counts; empty asks all and believes any.
    """

    netdev: str
    own: str
    target: str
    mtu: int
    mac: str = ""


@dataclass(frozen=True)
class Answer:
    """How many requests were answered; `problem` is what kept them from being sent."""

    count: int
    problem: str = ""


def request(question: Question, own_mac: bytes) -> bytes:
    """Return the frame: Ethernet header, request, zeros up to the MTU."""
    receiver = _mac(question.mac) or _EVERYONE
    sender, target = (IPv4Address(one).packed for one in (question.own, question.target))
    body = _BODY.pack(1, 0x0800, 6, 4, _REQUEST, own_mac, sender, bytes(6), target)
    return _ETHERNET.pack(receiver, own_mac, _PROTOCOL) + body.ljust(question.mtu, b"\0")


def answers(question: Question, frame: bytes) -> bool:
    """Whether a frame is the answer to the question, from the port that was asked."""
    if len(frame) < _ETHERNET.size + _BODY.size:
        return False
    _, _, _, _, kind, mac, sender, _, receiver = _BODY.unpack_from(frame, _ETHERNET.size)
    ends = (IPv4Address(question.target).packed, IPv4Address(question.own).packed)
    return kind == _REPLY and (sender, receiver) == ends and mac == (_mac(question.mac) or mac)


def ask(question: Question, count: int, every: float) -> Answer:
    """Ask `count` times, `every` seconds apart, and count the answers."""
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as port:
            port.bind((question.netdev, _PROTOCOL))
            return Answer(_count(port, question, count, every))
    except OSError as error:
        return Answer(0, error.strerror or str(error))


def _count(port: socket.socket, question: Question, count: int, every: float) -> int:
    frame, seen = request(question, port.getsockname()[4]), 0
    for number in range(1, count + 1):
        port.send(frame)
        until = time.monotonic() + (every if number < count else _LAST_WAIT)
        while seen < number and (left := until - time.monotonic()) > 0:
            port.settimeout(left)
            try:
                seen += answers(question, port.recv(2048))
            except TimeoutError:
                break
    return seen


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
