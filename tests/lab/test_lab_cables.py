"""Which ports see a carrier."""

from __future__ import annotations

import pytest
from twinlab.machine.cables import far_ends_up

A1, B1, A2, B2 = (1, 1), (2, 1), (1, 2), (2, 2)


@pytest.mark.parametrize(
    ("down", "cut", "with_carrier"),
    [
        ((), (), {A1, B1, A2, B2}),
        ((), (1,), {A2, B2}),
        ((), (1, 2), set()),
        ((B1,), (), {B1, A2, B2}),  # b's own port is down: a loses the carrier, b would have one
        ((A1, B1), (), {A2, B2}),
        ((A2,), (1,), {A2}),
    ],
)
def test_carrier(
    down: tuple[tuple[int, int], ...], cut: tuple[int, ...], with_carrier: set[tuple[int, int]]
) -> None:
    ports = {port: port not in down for port in (A1, B1, A2, B2)}
    assert {port for port, up in far_ends_up(ports, cut).items() if up} == with_carrier
