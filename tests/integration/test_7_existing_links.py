"""Links that others made: valid ones are kept, invalid ones are named, and mended when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from conftest import NAME
from lab_pair import Lab
from link_setups import (
    RAILS,
    SPARE,
    by_hand,
    by_netplan,
    by_profile,
    install_network_manager,
    links,
    make_bare,
    network_state,
    own_lab,
    said,
    shell,
    up,
)

MAIN, TWIN = RAILS
FABRIC = "playbooks/fabric.yml"
TWO_SUBNETS = (
    {MAIN: ("10.9.1.1/24", 9000), TWIN: ("10.9.2.1/24", 9000)},
    {MAIN: ("10.9.1.2/24", 9000), TWIN: ("10.9.2.2/24", 9000)},
)
ONE_SUBNET = (
    {MAIN: ("10.9.1.1/24", 1500), TWIN: ("10.9.1.3/24", 1500)},
    {MAIN: ("10.9.1.2/24", 1500), TWIN: ("10.9.1.4/24", 1500)},
)
Maker = Callable[[Lab, str, dict[str, tuple[str, int]]], None]


@pytest.fixture(scope="module")
def pair() -> Iterator[Lab]:
    """A pair of its own, since its network is set up otherwise; ssh between the nodes is there."""
    with own_lab(NAME) as lab:
        yield lab


@pytest.fixture(autouse=True)
def _bare(pair: Lab) -> None:
    make_bare(pair)


def make(lab: Lab, maker: Maker, ends: tuple[dict[str, tuple[str, int]], ...]) -> None:
    """Set both hosts up alike."""
    for host, ports in zip(lab.hosts, ends, strict=True):
        maker(lab, host, ports)


@pytest.mark.slow
def test_f07_rails_of_a_netplan_file_are_kept_and_only_ssh_is_set_up(pair: Lab) -> None:
    make(pair, by_netplan, TWO_SUBNETS)
    before = network_state(pair)

    run = pair.play(FABRIC).succeeded()

    assert "2 rails: rocep1s0f0,roceP2p1s0f0 <-> rocep1s0f0,roceP2p1s0f0" in run.output
    found = f"head {MAIN}: 10.9.1.1/24, MTU 9000, from netplan (/etc/netplan/50-theirs.yaml)"
    assert found in said(run.output)
    assert network_state(pair) == before
    assert pair.play(FABRIC).succeeded().changed == 0


def test_f10_twins_in_one_subnet_set_by_hand_at_1500_are_kept_with_a_warning(pair: Lab) -> None:
    make(pair, by_hand, ONE_SUBNET)
    before = network_state(pair)

    run = pair.play(FABRIC).succeeded()

    assert network_state(pair) == before
    warning = (
        f"{pair.hosts[1]} {MAIN} has 10.9.1.2/24 set by hand: it is gone after a reboot; "
        "fabric_manage: true makes it last"
    )
    assert warning in said(run.output)


def test_f11_rails_whose_mtus_differ_are_refused_and_mended_when_asked_for(pair: Lab) -> None:
    make(pair, by_netplan, TWO_SUBNETS)
    shell(pair, pair.hosts[1], f"ip link set {MAIN} mtu 1500")
    before = network_state(pair)

    refused = pair.play(FABRIC).refused()

    assert "rail 0 MTU differs: head 9000, worker 1500; set both to the same value" in said(refused.output)
    assert "set fabric_manage: true to let Twinserve mend it" in said(refused.output)
    assert network_state(pair) == before

    pair.play(FABRIC, "-e", "fabric_manage=true").succeeded()

    for host, ports in zip(pair.hosts, TWO_SUBNETS, strict=True):
        assert links(pair, host)[MAIN] == (9000, "UP", [ports[MAIN][0]])


def test_f24_a_cable_in_another_port_is_found_and_a_dark_port_that_is_set_is_refused(pair: Lab) -> None:
    pair.verb("plug", pair.hosts[1], "1")
    try:
        refused = pair.play(FABRIC, "-e", f"fabric_netdev={MAIN}").refused()
        run = pair.play(FABRIC).succeeded()
    finally:
        pair.verb("plug", pair.hosts[1], "0")

    assert f"{MAIN} is down on the worker; up RoCE ports: {', '.join(SPARE)}" in said(refused.output)
    assert "2 rails: rocep1s0f0,roceP2p1s0f0 <-> rocep1s0f1,roceP2p1s0f1" in run.output


@pytest.mark.slow
def test_f12_link_local_addresses_are_nobodys_and_give_way(pair: Lab) -> None:
    for host, ports in zip(pair.hosts, ({MAIN: "169.254.7.9/16"}, {MAIN: "169.254.201.3/16"}), strict=True):
        by_hand(pair, host, {port: (address, 1500) for port, address in ports.items()})

    run = pair.play(FABRIC).succeeded()

    assert "2 rails" in run.output
    assert "192.168.177.1/24" in links(pair, pair.hosts[0])[MAIN][2]


@pytest.mark.slow
def test_f12_addresses_set_by_hand_are_made_to_last_when_asked_for(pair: Lab) -> None:
    make(pair, by_hand, TWO_SUBNETS)
    worker = pair.hosts[1]

    pair.play(FABRIC, "-e", "fabric_manage=true").succeeded()

    before = {port: links(pair, worker)[port] for port in RAILS}
    assert before == {port: (9000, "UP", [TWO_SUBNETS[1][port][0]]) for port in RAILS}
    pair.verb("reboot", worker)
    assert {port: links(pair, worker)[port] for port in RAILS} == before


@pytest.mark.slow
def test_a_rail_with_one_addressed_end_gets_its_other_end(pair: Lab) -> None:
    up(pair, pair.hosts[1], *RAILS)
    by_netplan(pair, pair.hosts[0], TWO_SUBNETS[0])
    before = network_state(pair)[pair.hosts[0]]

    pair.play(FABRIC).succeeded()

    assert network_state(pair)[pair.hosts[0]] == before
    for port in RAILS:
        (address,) = links(pair, pair.hosts[1])[port][2]
        assert address.rpartition(".")[0] == TWO_SUBNETS[0][port][0].rpartition(".")[0]
        assert address != TWO_SUBNETS[0][port][0]
        assert links(pair, pair.hosts[1])[port][0] == 9000
    assert pair.play(FABRIC).succeeded().changed == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("worker", "words"),
    [
        ({MAIN: ("10.9.7.2/24", 9000)}, ("10.9.1.1/24", "10.9.7.2/24")),
        ({MAIN: ("10.9.1.1/24", 9000)}, ("both have 10.9.1.1",)),
    ],
    ids=["other subnets", "the same address"],
)
def test_ends_that_do_not_meet_are_named_and_mended_when_asked_for(
    pair: Lab, worker: dict[str, tuple[str, int]], words: tuple[str, ...]
) -> None:
    head = {MAIN: ("10.9.1.1/24", 9000)}
    make(pair, by_netplan, (head, worker))
    for host in pair.hosts:
        up(pair, host, *RAILS)
    before = network_state(pair)

    refused = pair.play(FABRIC).refused()

    assert [word for word in (*words, *pair.hosts, MAIN) if word not in said(refused.output)] == []
    assert "fabric_manage: true" in said(refused.output)
    assert network_state(pair) == before

    pair.play(FABRIC, "-e", "fabric_manage=true").succeeded()

    assert pair.play(FABRIC, "-e", "fabric_manage=true").succeeded().changed == 0


@pytest.mark.slow
def test_f09_a_twin_that_is_dead_is_dropped_with_the_reason_or_refused(pair: Lab) -> None:
    make(pair, by_netplan, TWO_SUBNETS)
    pair.verb("cut-rail", "2")
    try:
        run = pair.play(FABRIC).succeeded()
        refused = pair.play(FABRIC, "-e", "rails=2").refused()
    finally:
        pair.verb("mend-rail", "2")

    assert "1 rail: rocep1s0f0 <-> rocep1s0f0" in run.output
    assert "rail 1 roceP2p1s0f0" in said(run.output)
    assert "does not reach the peer: not used" in said(run.output)
    assert "rails is 2" in said(refused.output)


@pytest.mark.slow
def test_f09_addresses_on_crossed_functions_are_told(pair: Lab) -> None:
    crossed = {MAIN: TWO_SUBNETS[1][TWIN], TWIN: TWO_SUBNETS[1][MAIN]}
    make(pair, by_netplan, (TWO_SUBNETS[0], crossed))

    refused = pair.play(FABRIC).refused()

    ends = "rocep1s0f0 (10.9.1.1, MTU 9000) <-> roceP2p1s0f0 (10.9.1.2, MTU 9000)"
    assert f"rail 0 {ends} does not reach the peer: {pair.hosts[0]}:" in said(refused.output)


@pytest.fixture(scope="module")
def managed(pair: Lab) -> Lab:
    """The same pair with NetworkManager on the rails; the last tests, since it stays."""
    install_network_manager(pair)
    return pair


@pytest.mark.slow
def test_f14_rails_of_networkmanagers_profiles_are_kept_as_they_are(managed: Lab) -> None:
    make(managed, by_profile, TWO_SUBNETS)
    before = network_state(managed)

    run = managed.play(FABRIC).succeeded()

    assert "2 rails: rocep1s0f0,roceP2p1s0f0 <-> rocep1s0f0,roceP2p1s0f0" in run.output
    assert f"rail-{MAIN}" in said(run.output), "the profile is named"
    assert network_state(managed) == before
    assert managed.play(FABRIC).succeeded().changed == 0


@pytest.mark.slow
def test_f14_bare_ports_of_networkmanager_stay_with_it_and_keep_their_address_through_a_reboot(
    managed: Lab,
) -> None:
    for host in managed.hosts:
        up(managed, host, *RAILS)

    managed.play(FABRIC).succeeded()

    worker = managed.hosts[1]
    before = {port: links(managed, worker)[port] for port in RAILS}
    assert [before[port][2] for port in RAILS] == [["192.168.177.2/24"], ["192.168.178.2/24"]]
    managed.verb("reboot", worker)
    assert {port: links(managed, worker)[port] for port in RAILS} == before
    owner = managed.root(worker, "nmcli", "-t", "-f", "DEVICE,STATE", "device")
    assert f"{MAIN}:connected" in owner
    assert managed.play(FABRIC).succeeded().changed == 0
