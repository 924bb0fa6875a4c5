"""Changes of the link that cost the node, are refused, or are taken back: in labs of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from conftest import NAME
from hosts_state import differences, link_state
from lab_pair import Lab
from link_setups import (
    RAILS,
    SPARE,
    by_netplan,
    install_network_manager,
    make_bare,
    own_lab,
    said,
    shell,
    up,
)

FABRIC = "playbooks/fabric.yml"
OURS = "/etc/netplan/60-twinserve-fabric.yaml"
INVALID = "network:\n  version: 2\n  ethernets:\n    eth9:\n      addresses: [10.0.0.1]\n"
# Of two rails the head has one from a profile of its owner, the other by hand.
NM_OWN = """
nmcli con add type ethernet con-name mine ifname enp1s0f0np0 ipv4.method manual ipv4.addresses 10.50.0.1/24 \
  ipv6.method disabled
nmcli --wait 10 con up mine
nmcli dev set enP2p1s0f0np0 managed no
ip link set enP2p1s0f0np0 mtu 4200 up
ip -4 addr flush dev enP2p1s0f0np0
ip addr add 10.60.0.1/24 dev enP2p1s0f0np0
nmcli dev set enP2p1s0f0np0 managed yes
sleep 1
"""


@pytest.fixture(scope="module")
def back() -> Iterator[Lab]:
    """A bare pair; each test leaves its link as it was."""
    with own_lab(NAME) as lab:
        yield lab


@contextmanager
def while_our_file_is_there(lab: Lab, do: str, undo: str = ":") -> Iterator[None]:
    """A trap on the worker: `do` again and again while our netplan file is there, `undo` while it is not."""
    loop = f"while sleep 0.1; do if [ -e {OURS} ]; then {do}; else {undo}; fi; done"
    lab.root(lab.hosts[1], "systemd-run", "--quiet", "--collect", "--unit=trap", "sh", "-c", loop)
    try:
        yield
    finally:
        lab.root(lab.hosts[1], "systemctl", "stop", "trap")


@contextmanager
def netplan_file(lab: Lab, name: str, content: str) -> Iterator[None]:
    """A file of somebody else's on the worker, that nobody has applied."""
    path = f"/etc/netplan/{name}"
    lab.root(lab.hosts[1], "sh", "-c", 'umask 077; printf %s "$2" > "$1"', "-", path, content)
    try:
        yield
    finally:
        lab.root(lab.hosts[1], "rm", path)


def management(lab: Lab, host: str) -> str:
    shown = lab.root(host, "ip", "-br", "-4", "addr", "show", "enP7s7")
    return shown.split()[2].split("/")[0]


def with_ports_up(lab: Lab) -> dict[str, Any]:
    """The state of the link once its ports are up: a run that is refused sets them up and leaves them so."""
    for host in lab.hosts:
        up(lab, host, *RAILS, *SPARE)
    return link_state(lab)


@pytest.mark.slow
def test_f12_absent_puts_the_link_of_a_bare_pair_back_byte_for_byte(back: Lab) -> None:
    before = link_state(back)
    back.play(FABRIC).succeeded()
    assert back.node(back.hosts[1]).file(OURS).mode == 0o600
    addressed = link_state(back)
    predicted = back.play(FABRIC, "-e", "state=absent", "--check", "--diff").succeeded()
    assert differences(addressed, link_state(back)) == []
    assert "-        addresses: [192.168.177.2/24]" in predicted.output

    run = back.play(FABRIC, "-e", "state=absent").succeeded()

    assert differences(before, link_state(back)) == []
    assert run.changed == predicted.changed
    assert back.play(FABRIC, "-e", "state=absent").succeeded().changed == 0


def test_absent_is_refused_while_the_pair_is_started(back: Lab) -> None:
    before, head = link_state(back), back.hosts[0]
    back.root(head, "systemd-run", "--quiet", "--collect", "--unit=twinserve", "sleep", "600")
    try:
        run = back.play(FABRIC, "-e", "state=absent").refused()
    finally:
        back.root(head, "systemctl", "stop", "twinserve")
    assert f"{head} serves: run playbooks/stop.yml first, then this again" in said(run.output)
    assert differences(before, link_state(back)) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "40-office.yaml",
            "network:\n  version: 2\n  ethernets:\n    enP7s7:\n      mtu: 1400\n",
            "/etc/netplan/40-office.yaml has edits of enP7s7 that were never applied",
        ),
        (
            "99-office.yaml",
            INVALID,
            "/etc/netplan/99-office.yaml:5:18: Error in network definition: address '10.0.0.1' is missing "
            "/prefixlength: mend that file first, no address was changed",
        ),
    ],
    ids=["unapplied", "invalid"],
)
def test_f13_files_of_others_that_would_go_live_or_fail_with_ours_are_refused(
    back: Lab, name: str, content: str, message: str
) -> None:
    with netplan_file(back, name, content):
        before = with_ports_up(back)
        run = back.play(FABRIC).refused()
        assert message in said(run.output)
        assert differences(before, link_state(back)) == []


def test_check_tells_that_netplan_would_be_installed_and_was_not_asked(back: Lab) -> None:
    before, worker = with_ports_up(back), back.hosts[1]
    shell(back, worker, "mv /usr/sbin/netplan /usr/sbin/netplan.away")
    try:
        run = back.play(FABRIC, "--check").succeeded()
    finally:
        shell(back, worker, "mv /usr/sbin/netplan.away /usr/sbin/netplan")
    assert "would install netplan.io; whether the rails' file goes with the other" in said(run.output)
    assert differences(before, link_state(back)) == []


def test_f12_absent_leaves_a_link_that_its_owner_set_up_after_a_refused_run(back: Lab) -> None:
    with netplan_file(back, "99-office.yaml", INVALID):
        back.play(FABRIC).refused()
    for number, host in enumerate(back.hosts, start=1):
        by_netplan(back, host, {port: (f"10.9.{rail}.{number}/24", 9000) for rail, port in enumerate(RAILS)})
    try:
        before = link_state(back)
        assert "10.9.0.2/24" in str(before)
        back.play(FABRIC, "-e", "state=absent").succeeded()
        assert differences(before, link_state(back)) == []
    finally:
        make_bare(back)


def test_f13_a_change_that_costs_the_management_address_is_taken_back_by_the_node(back: Lab) -> None:
    address, before = management(back, back.hosts[1]), with_ports_up(back)

    with while_our_file_is_there(back, "ip -4 addr flush dev enP7s7"):
        run = back.play(FABRIC).refused()

    text = f"management address {address} did not return within 5 s; fabric file rolled back"
    assert text in said(run.output)
    assert management(back, back.hosts[1]) == address
    assert differences(before, link_state(back)) == []
    assert "TASK [fabric : Give the rails their addresses on rank 0]" not in run.output


@pytest.mark.slow
def test_f13_a_change_after_which_no_new_connection_comes_through_is_taken_back_too(back: Lab) -> None:
    before, rule = with_ports_up(back), "INPUT -p tcp --dport 22 --syn -j DROP"
    drop = f"iptables -C {rule} 2> /dev/null || iptables -I {rule}"

    with while_our_file_is_there(back, drop, f"iptables -D {rule} 2> /dev/null"):
        run = back.play(FABRIC).refused()

    text = said(run.output)
    assert f"{back.hosts[1]}: its rails were being addressed (192.168.177.2/24 to enp1s0f0np0" in text
    assert "no new connection came through" in text
    assert "it took the change back by itself and is reachable again" in text
    assert differences(before, link_state(back)) == []


@pytest.mark.slow
def test_f13_a_node_whose_change_was_killed_half_way_goes_back_by_itself(back: Lab) -> None:
    before, live = with_ports_up(back), "ip -4 addr show enp1s0f0np0 | grep -q 192.168.177"

    with while_our_file_is_there(back, f"{live} && pkill -9 ^python"):
        run = back.play(FABRIC).refused()

    assert "waiting for the node to go back by itself" in run.output
    assert "it took the change back by itself and is reachable again" in said(run.output)
    assert differences(before, link_state(back)) == []


@pytest.mark.slow
def test_f12_absent_leaves_rails_that_others_addressed_as_they_are() -> None:
    with own_lab(NAME, "--cabled", mark="y") as lab:
        before = link_state(lab)
        lab.play(FABRIC).succeeded()
        lab.play(FABRIC, "-e", "state=absent").succeeded()
        assert differences(before, link_state(lab)) == []


@pytest.mark.slow
def test_f14_absent_gives_ports_back_to_the_profiles_and_hands_that_had_them() -> None:
    with own_lab(NAME, mark="y") as lab:
        install_network_manager(lab, "no-auto-default=*\\ndns=none")
        shell(lab, lab.hosts[0], NM_OWN)
        before = link_state(lab)
        lab.play(FABRIC, "-e", "fabric_manage=true").succeeded()
        assert "twinserve-enp1s0f0np0" in lab.root(lab.hosts[1], "nmcli", "-t", "-f", "NAME", "con", "show")

        lab.play(FABRIC, "-e", "state=absent").succeeded()

        assert differences(before, link_state(lab)) == []
        assert lab.play(FABRIC, "-e", "state=absent").succeeded().changed == 0
