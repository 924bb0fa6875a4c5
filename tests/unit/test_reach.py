"""The full-size ping: its command line, and how its answers are judged."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import arp
from ansible_collections.twinserve.pair.plugins.module_utils.reach import (
    Target,
    parse_ping,
    ping_argv,
    reach,
)

TWIN = Target("enP2p1s0f1np1", "203.0.113.2", 9000)
ALL = "5 packets transmitted, 5 received, 0% packet loss, time 401ms"


def test_ping_is_full_size_unfragmentable_and_bound_to_the_port() -> None:
    assert ping_argv(TWIN) == [
        *["ping", "-M", "do", "-s", "8972", "-c", "5", "-i", "0.02", "-W", "1", "-n"],
        *["-I", "enP2p1s0f1np1", "203.0.113.2"],
    ]


@pytest.mark.parametrize(
    ("code", "text", "ok", "detail"),
    [
        (0, ALL, True, "8972 bytes unfragmented"),
        (0, "5 packets transmitted, 3 received, 40% packet loss", False, "3 of 5 packets answered"),
        (
            1,
            "ping: sendmsg: message too long, mtu=1500\n",
            False,
            "ping: sendmsg: message too long, mtu=1500",
        ),
        (
            1,
            "From 203.0.113.1 icmp_seq=1 Destination Host Unreachable",
            False,
            "8972 bytes unfragmented: Destination Host Unreachable",
        ),
        (2, "ping: SO_BINDTODEVICE x: Operation not permitted", False, "Operation not permitted"),
        (1, "5 packets transmitted, 0 received", False, "no answer within 1 s"),
    ],
)
def test_answers(code: int, text: str, ok: bool, detail: str) -> None:
    judged = parse_ping(TWIN, code, text)
    assert judged.ok is ok
    assert judged.detail.endswith(detail)


def test_first_lost_packet_is_forgiven_the_second_is_not() -> None:
    asked: list[str] = []

    def ping(argv: Sequence[str]) -> tuple[int, str]:
        asked.append(argv[-1])
        return (0, ALL) if argv[-1] == "203.0.113.2" and asked.count(argv[-1]) == 2 else (1, "")

    results = reach([TWIN, Target("enp1s0f1np1", "198.51.100.2", 9000)], ping)
    assert [result.ok for result in results] == [True, False]
    assert sorted(asked) == ["198.51.100.2"] * 2 + ["203.0.113.2"] * 2
    assert reach([]) == []


MAC = "4c:bb:47:00:02:11"
SHARED = Target("enP2p1s0f1np1", "198.51.100.102", 9000, arp_from="198.51.100.101", mac=MAC)
QUESTION = arp.Question("enP2p1s0f1np1", "198.51.100.101", "198.51.100.102", 9000, MAC)


def test_f10_a_port_that_shares_its_subnet_is_asked_by_arp_and_not_by_ping() -> None:
    asked: list[arp.Question] = []

    def ask(question: arp.Question, count: int, every: float) -> arp.Answer:
        asked.append(question)
        return arp.Answer(count)

    (result,) = reach([SHARED], lambda argv: (1, "never asked"), ask)
    assert (result.ok, result.detail, asked) == (True, "9000 bytes by ARP", [QUESTION])


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (arp.Answer(0), "9000 bytes by ARP: no answer within 1 s"),
        (arp.Answer(4), "9000 bytes by ARP: 4 of 5 packets answered"),
        (arp.Answer(0, "Message too long"), "9000 bytes by ARP: Message too long"),
    ],
)
def test_f10_a_twin_that_does_not_answer_is_found_out(answer: arp.Answer, detail: str) -> None:
    (result,) = reach([SHARED], lambda argv: (0, ALL), lambda *_: answer)
    assert (result.ok, result.detail) == (False, detail)


def test_f10_a_request_is_as_long_as_the_mtu_and_goes_to_the_facing_port() -> None:
    own = bytes.fromhex("4cbb47000111")
    frame = arp.request(QUESTION, own)
    assert len(frame) == 9014
    assert frame[:14] == bytes.fromhex("4cbb470002114cbb470001110806")
    assert frame[14:42] == bytes.fromhex("00010800060400014cbb47000111c6336465000000000000c6336466")
    assert not any(frame[42:])
    everyone = arp.request(arp.Question("e", "198.51.100.1", "198.51.100.2", 1500), own)
    assert everyone[:6] == b"\xff" * 6


def reply(kind: int = 2, mac: str = MAC, sender: str = "c6336466", receiver: str = "c6336465") -> bytes:
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, kind) + bytes.fromhex(mac.replace(":", ""))
    return bytes(14) + body + bytes.fromhex(sender) + bytes(6) + bytes.fromhex(receiver) + bytes(18)


@pytest.mark.parametrize(
    ("frame", "counts"),
    [
        pytest.param(reply(), True, id="the-answer"),
        pytest.param(reply(kind=1), False, id="a-request"),
        pytest.param(reply(mac="4c:bb:47:00:02:10"), False, id="from-the-other-twin"),
        pytest.param(reply(sender="c6336402"), False, id="of-another-address"),
        pytest.param(reply(receiver="c6336401"), False, id="for-another-address"),
        pytest.param(reply()[:40], False, id="cut"),
    ],
)
def test_f10_only_the_facing_ports_own_answer_counts(frame: bytes, counts: bool) -> None:
    assert arp.answers(QUESTION, frame) is counts


def test_an_unknown_port_is_a_problem_and_no_crash() -> None:
    # Without root the socket is refused, with root the port is not found.
    answer = arp.ask(arp.Question("nosuchport0", "198.51.100.1", "198.51.100.2", 1500), 1, 0.0)
    assert answer.count == 0
    assert answer.problem in ("No such device", "Operation not permitted")
