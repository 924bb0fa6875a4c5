"""Putting the rails of a node back: what absent restores, what it leaves to the owner, what is recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import fabric_record
from ansible_collections.twinserve.pair.plugins.modules import rail_addresses
from fake_ports import shown
from fake_rails import BARE, MINE, OFFICE, OLD, PORT, READY, Capture, Node, addressed, change
from module_run import run_module


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def test_absent_puts_back_what_was_set_by_hand_and_only_once(node: Node, capsys: Capture) -> None:
    by_hand = shown(**OFFICE, enp1s0f0np0=("10.9.9.9", 24, 4200))
    addressed(node, capsys, by_hand)
    node.networkd_sets(by_hand)

    predicted = run_module(rail_addresses, capsys, check=True, state="absent")
    assert (predicted["changed"], node.acts()) == (True, [])
    assert "enp1s0f0np0: up, MTU 4200, 10.9.9.9/24" in predicted["diff"]["after"]
    answer = run_module(rail_addresses, capsys, state="absent")

    assert (answer["failed"], answer["changed"], answer["way_back"]) == (False, True, "armed")
    assert not node.file.exists()
    assert node.acts("netplan") == ["netplan generate"]
    assert node.acts("ip") == [
        "ip link set enp1s0f0np0 mtu 4200",
        "ip -4 addr flush dev enp1s0f0np0",
        "ip -6 addr flush dev enp1s0f0np0 scope global",
        "ip link set enp1s0f0np0 up",
        "ip addr add 10.9.9.9/24 dev enp1s0f0np0",
    ]
    assert fabric_record.FILE.exists(), "until it is confirmed"
    run_module(rail_addresses, capsys, state="confirmed")
    assert not fabric_record.FILE.parent.exists()
    assert not run_module(rail_addresses, capsys, state="absent")["changed"]


def test_absent_that_does_not_work_is_taken_back(node: Node, capsys: Capture) -> None:
    addressed(node, capsys, shown(**OFFICE, enp1s0f0np0=("10.9.9.9", 24, 4200)))
    node.networkd_sets(BARE)
    answer = run_module(rail_addresses, capsys, state="absent")
    assert answer["msg"] == (
        "the link could not be put back as it was: enp1s0f0np0 has MTU 1500 instead of 4200; "
        "enp1s0f0np0 has no address instead of 10.9.9.9/24; the link is as Twinserve had set it up"
    )
    assert node.file.read_text() == MINE
    assert fabric_record.FILE.exists()


def owner_sets(port: tuple[str, int, int], **more: str) -> str:
    """What `ip` shows after the port's owner set it up; `more` is of the link, such as its `master`."""
    links = json.loads(shown(**OFFICE, enp1s0f0np0=port))
    links[1] |= more
    return json.dumps(links)


@pytest.mark.parametrize(
    "theirs",
    [
        owner_sets(("10.9.9.9", 24, 4200)),
        owner_sets(("", 24, 4200), master="br0"),
        owner_sets(("10.9.9.9", 24, 4200)).replace(
            '"prefixlen": 24}]}]', '"prefixlen": 24, "dynamic": true}]}]'
        ),
    ],
    ids=["address", "bridge", "lease"],
)
@pytest.mark.parametrize("check", [True, False])
def test_absent_leaves_what_the_owner_set_up_after_a_run_that_was_refused(
    node: Node, capsys: Capture, theirs: str, check: bool
) -> None:
    node.ports(BARE.replace('"UP", "LOWER_UP"', ""))
    fabric_record.ensure({"enp1s0f0np0"})
    node.ports(theirs)
    answer = run_module(rail_addresses, capsys, check=check, state="absent")
    assert (answer["failed"], answer["way_back"], node.acts()) == (False, "none", [])
    assert fabric_record.FILE.exists() == check


def test_absent_sets_a_port_down_that_only_came_up_for_us(node: Node, capsys: Capture) -> None:
    node.ports(BARE.replace('"UP", "LOWER_UP"', ""))
    fabric_record.ensure({"enp1s0f0np0"})
    node.ports(BARE)
    fabric_record.ensure({"enp1s0f0np0"})
    run_module(rail_addresses, capsys, state="absent")
    assert "ip link set enp1s0f0np0 down" in node.acts("ip")


def test_what_the_owner_set_up_between_two_runs_is_what_absent_restores(node: Node, capsys: Capture) -> None:
    fabric_record.ensure({"enp1s0f0np0"})
    by_hand = owner_sets(("10.9.9.9", 24, 4200))
    addressed(node, capsys, by_hand)
    node.networkd_sets(by_hand)
    assert not run_module(rail_addresses, capsys, state="absent")["failed"]
    assert "ip addr add 10.9.9.9/24 dev enp1s0f0np0" in node.acts("ip")


def test_absent_puts_a_port_back_into_its_bridge(node: Node, capsys: Capture) -> None:
    bridged = owner_sets(("", 24, 1500), master="br0")
    addressed(node, capsys, bridged)
    node.networkd_sets(BARE)
    answer = run_module(rail_addresses, capsys, check=True, state="absent")
    assert "enp1s0f0np0: up, MTU 1500, no address, in br0" in answer["diff"]["after"]
    (node.root / "node/bridged").write_text(bridged)
    node.programs.answer("ip_link_set_enp1s0f0np0_master", do='cp "$NODE/bridged" "$NODE/answers/ip_-j_addr"')
    assert not run_module(rail_addresses, capsys, state="absent")["failed"]
    links = [call for call in node.acts("ip") if call.startswith("ip link set")]
    assert links[-3:] == [f"ip link set enp1s0f0np0 {what}" for what in ("down", "master br0", "up")]


def test_absent_that_leaves_a_bridge_without_its_port_is_taken_back(node: Node, capsys: Capture) -> None:
    addressed(node, capsys, owner_sets(("", 24, 1500), master="br0"))
    node.networkd_sets(BARE)
    answer = run_module(rail_addresses, capsys, state="absent")
    assert "the link could not be put back as it was: enp1s0f0np0 is not in br0" in answer["msg"]


def test_absent_on_a_node_that_we_never_changed_does_nothing(node: Node, capsys: Capture) -> None:
    answer = run_module(rail_addresses, capsys, state="absent")
    assert (answer["changed"], answer["way_back"], node.acts()) == (False, "none", [])


def test_absent_removes_a_file_of_an_earlier_version_that_left_no_record(node: Node, capsys: Capture) -> None:
    node.file.write_text(MINE)
    node.ports(READY)
    node.networkd_sets(shown(**OFFICE, enp1s0f0np0=("", 24, 9000)))
    assert run_module(rail_addresses, capsys, state="absent")["changed"]
    assert not node.file.exists()


def test_f14_absent_leaves_our_profile_and_deletes_it_when_confirmed(node: Node, capsys: Capture) -> None:
    node.networkmanager(enp1s0f0np0="connected:Wired connection 3:77-88")
    change(capsys, netplan=None, profiles=[PORT])
    run_module(rail_addresses, capsys, state="confirmed")
    (node.root / "node/calls").unlink()
    node.programs.answer("nmcli_-t_-f_NAME", "twinserve-enp1s0f0np0\n")
    for_port = "nmcli_-t_-f_connection.interface-name_con_show_id_twinserve-enp1s0f0np0"
    node.programs.answer(for_port, "connection.interface-name:enp1s0f0np0\n")
    node.networkmanager(enp1s0f0np0="connected:twinserve-enp1s0f0np0:11-22")
    (node.root / "node/bare").write_text(BARE)
    node.programs.answer("nmcli_--wait_10_con_up", do='cp "$NODE/bare" "$NODE/answers/ip_-j_addr"')

    answer = run_module(rail_addresses, capsys, state="absent")

    assert (answer["failed"], answer["way_back"]) == (False, "armed")
    assert node.acts("nmcli") == [
        "nmcli con modify id twinserve-enp1s0f0np0 connection.autoconnect no",
        "nmcli --wait 10 con up uuid 77-88 ifname enp1s0f0np0",
    ]
    assert "con up uuid 11-22" in node.undo.read_text(), "the way back brings ours up again"
    run_module(rail_addresses, capsys, state="confirmed")
    assert node.acts("nmcli")[-1] == "nmcli con delete id twinserve-enp1s0f0np0"


def test_f14_a_profile_of_the_owners_that_is_only_called_like_ours_stays(node: Node, capsys: Capture) -> None:
    node.networkmanager(enp1s0f0np0="connected:Wired connection 3:77-88")
    change(capsys, netplan=None, profiles=[PORT])
    run_module(rail_addresses, capsys, state="confirmed")
    (node.root / "node/calls").unlink()
    node.programs.answer("nmcli_-t_-f_NAME", "twinserve-wifi\ntwinserve-enp1s0f0np0\n")
    asked = "nmcli_-t_-f_connection.interface-name_con_show_id_twinserve"
    node.programs.answer(f"{asked}-wifi", "connection.interface-name:wlan0\n")
    node.programs.answer(f"{asked}-enp1s0f0np0", "connection.interface-name:enp1s0f0np0\n")
    node.networkmanager(enp1s0f0np0="connected:twinserve-enp1s0f0np0:11-22")
    (node.root / "node/bare").write_text(BARE)
    node.programs.answer("nmcli_--wait_10_con_up", do='cp "$NODE/bare" "$NODE/answers/ip_-j_addr"')
    run_module(rail_addresses, capsys, state="absent")
    run_module(rail_addresses, capsys, state="confirmed")
    deleted = [call for call in node.acts("nmcli") if "delete" in call]
    assert deleted == ["nmcli con delete id twinserve-enp1s0f0np0"]


def test_a_change_of_an_earlier_version_is_not_taken_for_what_was_before(node: Node, capsys: Capture) -> None:
    node.file.write_text(OLD)
    node.ports(shown(**OFFICE, enp1s0f0np0=("192.168.177.1", 24, 4000)))
    change(capsys)
    record = fabric_record.load()
    assert record is not None
    assert (record["netplan"], record["ports"]["enp1s0f0np0"]["addresses"]) == (None, [])


def test_f13_absent_too_is_refused_while_others_edits_would_go_live(node: Node, capsys: Capture) -> None:
    addressed(node, capsys, BARE)
    stray = node.root / "run/systemd/network/10-netplan-eno1.network"
    stray.parent.mkdir(parents=True)
    stray.write_text("[Match]\nName=eno1\n")
    answer = run_module(rail_addresses, capsys, state="absent")
    assert "eno1 still has what a netplan file gave it that is no longer there" in answer["msg"]
    assert node.acts() == []
