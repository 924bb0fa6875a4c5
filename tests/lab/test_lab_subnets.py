"""Which networks labs get, so that several can run at once."""

from __future__ import annotations

import ipaddress

import pytest
from twinlab.errors import Refusal
from twinlab.subnets import Network, blocks_in_use, choose, preferred_block


def test_addresses_of_a_block() -> None:
    network = Network(3)
    assert str(network.block_network) == "198.18.12.0/22"
    assert network.gateway == "198.18.12.1"
    assert [network.address(1), network.address(2)] == ["198.18.12.11", "198.18.12.12"]
    assert [network.rail_address(1, 1), network.rail_address(2, 2)] == ["198.18.13.11", "198.18.14.12"]


def test_last_block_is_inside_the_benchmark_range() -> None:
    assert Network(127).block_network.subnet_of(ipaddress.IPv4Network("198.18.0.0/15"))


def test_the_name_decides_when_nobody_is_in_the_way() -> None:
    assert choose("spark", taken=()).block == preferred_block("spark") == choose("spark", taken=()).block
    assert preferred_block("spark") != preferred_block("ci")


def test_a_taken_block_gives_the_next_and_a_remembered_one_comes_first() -> None:
    first = preferred_block("ci")
    assert choose("ci", taken={first}).block == (first + 1) % 128
    assert choose("ci", taken=(), remembered=100).block == 100
    assert choose("ci", taken={100}, remembered=100).block == first


def test_no_block_left_is_a_refusal() -> None:
    with pytest.raises(Refusal, match="no free network"):
        choose("ci", taken=range(128))


@pytest.mark.parametrize(
    ("addresses", "blocks"),
    [
        (["10.0.0.5/24", "127.0.0.1/8"], set()),
        (["198.18.12.1/24"], {3}),
        (["198.18.15.1/24", "198.19.255.1/24"], {3, 127}),
        (["198.18.8.1/21"], {2, 3}),
        (["fe80::1/64"], set()),
    ],
)
def test_blocks_that_the_machine_uses(addresses: list[str], blocks: set[int]) -> None:
    assert blocks_in_use(addresses) == blocks
