"""The full-size ping: its command line, and how its answers are judged."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.reach import (
    Target,
    parse_ping,
    ping_argv,
    reach,
)

TWIN = Target("enP2p1s0f1np1", "203.0.113.2", 9000)


def test_ping_is_full_size_unfragmentable_and_bound_to_the_port() -> None:
    assert ping_argv(TWIN) == [
        *["ping", "-M", "do", "-s", "8972", "-c", "1", "-W", "1", "-n", "-I", "enP2p1s0f1np1", "203.0.113.2"]
    ]


@pytest.mark.parametrize(
    ("code", "text", "ok", "detail"),
    [
        (0, "1 received", True, "8972 bytes unfragmented"),
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
            "Destination Host Unreachable",
        ),
        (2, "ping: SO_BINDTODEVICE x: Operation not permitted", False, "Operation not permitted"),
        (1, "1 packets transmitted, 0 received", False, "no answer within 1 s"),
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
        return (0, "") if argv[-1] == "203.0.113.2" and asked.count(argv[-1]) == 2 else (1, "")

    results = reach([TWIN, Target("enp1s0f1np1", "198.51.100.2", 9000)], ping)
    assert [result.ok for result in results] == [True, False]
    assert sorted(asked) == ["198.51.100.2"] * 2 + ["203.0.113.2"] * 2
    assert reach([]) == []
