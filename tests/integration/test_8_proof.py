"""The rails' proof on real ports: twins in one subnet, a twin that is dead with its link up, a bad cable."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import NAME
from lab_pair import ROOT, Lab
from link_setups import RAILS, by_hand, make_bare, own_lab, said, shell

MAIN, TWIN = RAILS
FABRIC = "playbooks/fabric.yml"
ONE_SUBNET = (
    {MAIN: ("10.9.1.1/24", 9000), TWIN: ("10.9.1.101/24", 9000)},
    {MAIN: ("10.9.1.2/24", 9000), TWIN: ("10.9.1.102/24", 9000)},
)
TWINS = "rail 1 roceP2p1s0f0 ({}, MTU 9000) <-> roceP2p1s0f0 ({}, MTU 9000)"
DROPPED = f"{TWINS} does not reach the peer: not used"
ANSIBLE = (str(ROOT / ".venv/bin/ansible"), "--become", "--module-name", "twinserve.pair.rdma_info")
ONE_RAIL = "msg: '1 rail: rocep1s0f0 <-> rocep1s0f0'"
TWO_RAILS = "msg: '2 rails: rocep1s0f0,roceP2p1s0f0 <-> rocep1s0f0,roceP2p1s0f0'"
JSON = {"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}


@pytest.fixture(scope="module")
def pair() -> Iterator[Lab]:
    """A pair of its own, in which nothing serves: rails that serve are not proved again."""
    with own_lab(NAME) as lab:
        lab.play(FABRIC).succeeded()
        yield lab


def rdma_info(lab: Lab) -> list[dict[str, Any]]:
    """What the module says of each host, asked as anybody would."""
    found = []
    for host in lab.hosts:
        argv = [*ANSIBLE, "-i", str(lab.inventory), host]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT, env=JSON)
        found.append(json.loads(done.stdout.partition("=>")[2])["rdma"])
    return found


def test_a_nodes_whole_fabric_comes_in_one_call(pair: Lab) -> None:
    for rank, found in enumerate(rdma_info(pair), start=1):
        device = next(one for one in found["devices"] if one["netdev"] == MAIN)
        assert (device["state"], device["speed"], device["mtu"]) == ("ACTIVE", 200000, 9000)
        assert device["addresses"] == [f"192.168.177.{rank}/24"]
        assert device["pcie"]["throughput_gbps"] == 126.0
        assert device["counters"]["symbol_error"] == 0
        port = next(one for one in found["ports"] if one["netdev"] == MAIN)
        assert (port["hca"], port["service"], port["lasting"]) == (device["hca"], "networkd", True)
        assert "/dev/infiniband/uverbs0" in found["char_devices"]
        assert found["errors"] == {}


def test_each_rail_has_its_line(pair: Lab) -> None:
    run = pair.play(FABRIC).succeeded()

    line = "rail 0 rocep1s0f0 <-> rocep1s0f0: 200 Gb/s, MTU 9000, GID 3, 8972 bytes both ways"
    assert line in said(run.output)
    assert "warn" not in said(run.output)
    assert said(run.output).index(line) < said(run.output).index(TWO_RAILS)


@pytest.mark.slow
def test_a_bad_cable_and_a_slow_port_are_warned_of_by_host_and_rail(pair: Lab) -> None:
    pair.verb("flaky", "2")
    try:
        run = pair.play(FABRIC, "-e", "fabric_speed=400").succeeded()
    finally:
        pair.verb("flaky", "2", "--clear")

    text, worn = said(run.output), "symbol_error (bits are damaged on the cable) rose by"
    for host in pair.hosts:
        assert f"warn {host} rail 1 roceP2p1s0f0 {worn}" in text
        assert f"{host} rail 0 rocep1s0f0 {worn}" not in text
        assert f"warn {host} rail 0 {MAIN} runs at 200 Gb/s, 400 are expected (fabric_speed)" in text


def test_f09_a_twin_that_is_deaf_with_its_link_up_is_dropped_on_both_ranks_or_refused(pair: Lab) -> None:
    shell(pair, pair.hosts[1], f"ip link set {TWIN} arp off")
    try:
        run = pair.play(FABRIC).succeeded()
        refused = pair.play(FABRIC, "-e", "rails=2").refused()
    finally:
        shell(pair, pair.hosts[1], f"ip link set {TWIN} arp on")

    dropped = DROPPED.format("192.168.178.1", "192.168.178.2")
    assert f"warn {dropped}" in said(run.output)
    assert f"{pair.hosts[0]}: {TWIN} (MTU 9000) does not reach 192.168.178.2" in said(run.output)
    assert "2 rails:" not in run.output, "what was found is not told as what is used"
    assert said(run.output).index(f"warn {dropped}") < said(run.output).index(ONE_RAIL)
    assert f"rails is 2, but only 1 can be used: {dropped}" in said(refused.output)


@pytest.mark.slow
def test_f10_twins_in_one_subnet_are_proved_by_arp_and_a_deaf_one_is_found_out(pair: Lab) -> None:
    make_bare(pair)
    for host, ports in zip(pair.hosts, ONE_SUBNET, strict=True):
        by_hand(pair, host, ports)

    alive = pair.play(FABRIC).succeeded()
    shell(pair, pair.hosts[1], f"ip link set {TWIN} arp off")
    try:
        deaf = pair.play(FABRIC).succeeded()
    finally:
        shell(pair, pair.hosts[1], f"ip link set {TWIN} arp on")

    line = "rail 1 roceP2p1s0f0 <-> roceP2p1s0f0: 200 Gb/s, MTU 9000, GID 3, 9000 bytes by ARP both ways"
    assert line in said(alive.output)
    assert f"warn {DROPPED.format('10.9.1.101', '10.9.1.102')}" in said(deaf.output)


@pytest.mark.slow
def test_a_main_rail_that_is_deaf_is_refused_with_both_ends_and_the_next_step(pair: Lab) -> None:
    make_bare(pair)
    pair.play(FABRIC).succeeded()
    shell(pair, pair.hosts[1], f"ip link set {MAIN} arp off")
    try:
        run = pair.play(FABRIC).refused()
    finally:
        shell(pair, pair.hosts[1], f"ip link set {MAIN} arp on")

    ends = "rocep1s0f0 (192.168.177.1, MTU 9000) <-> rocep1s0f0 (192.168.177.2, MTU 9000)"
    assert f"rail 0 {ends} does not reach the peer: {pair.hosts[0]}: {MAIN}" in said(run.output)
    command = f"ping -M do -s 8972 -I {MAIN} 192.168.177.2 on {pair.hosts[0]}"
    assert f"({command}), then run playbooks/fabric.yml" in said(run.output)
