"""Ports that are somebody's without an IPv4 address: a bridge keeps its member, IPv6 its link."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import NAME
from lab_pair import Lab
from link_setups import RAILS, make_bare, network_state, own_lab, said, shell, up

MAIN, TWIN = RAILS
FABRIC = "playbooks/fabric.yml"
BRIDGED = f"ip link add br0 type bridge; ip link set br0 up; ip link set {MAIN} master br0"


@pytest.fixture(scope="module")
def pair() -> Iterator[Lab]:
    """A pair of its own, since its network is set up otherwise."""
    with own_lab(NAME) as lab:
        yield lab


@pytest.fixture(autouse=True)
def _bare(pair: Lab) -> None:
    make_bare(pair)
    for host in pair.hosts:
        up(pair, host, *RAILS)


@pytest.mark.slow
def test_f15_a_bridge_keeps_its_port_and_the_free_twin_becomes_the_rail(pair: Lab) -> None:
    for host in pair.hosts:
        shell(pair, host, BRIDGED)
    try:
        run = pair.play(FABRIC).succeeded()

        assert f"{pair.hosts[0]} {MAIN} is part of br0: no rail" in said(run.output)
        assert "1 rail: roceP2p1s0f0 <-> roceP2p1s0f0" in run.output
        for host in pair.hosts:
            assert f"{MAIN}:" not in shell(pair, host, "cat /etc/netplan/60-twinserve-fabric.yaml")
            assert " master br0 state forwarding " in shell(pair, host, f"bridge link show dev {MAIN}")
        assert pair.play(FABRIC).succeeded().changed == 0
    finally:
        for host in pair.hosts:
            shell(pair, host, "ip link del br0")


def test_f12_a_link_with_ipv6_only_is_refused_and_stays(pair: Lab) -> None:
    for number, host in enumerate(pair.hosts, start=1):
        for subnet, port in enumerate(RAILS):
            shell(pair, host, f"ip addr add fd00:7{subnet}::{number}/64 dev {port}")
    before = network_state(pair)

    run = pair.play(FABRIC).refused()

    assert f"no RDMA port is free for a rail: {MAIN} has fd00:70::1/64;" in said(run.output)
    assert "give both ends an IPv4 address, or set fabric_manage: true" in said(run.output)
    assert network_state(pair) == before
    for number, host in enumerate(pair.hosts, start=1):
        assert f" fd00:70::{number}/64 " in shell(pair, host, f"ip -6 addr show dev {MAIN}")
