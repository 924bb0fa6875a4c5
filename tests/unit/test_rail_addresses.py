"""Changing the rails of a node: what stays when it works, what comes back when not, what absent restores."""

from __future__ import annotations

import fcntl
import json
import subprocess
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import fabric_record, guard, way_back
from ansible_collections.twinserve.pair.plugins.module_utils.confirming import LIMIT
from ansible_collections.twinserve.pair.plugins.modules import rail_addresses
from fake_ports import shown
from fake_rails import BARE, MINE, OFFICE, OLD, PORT, PROFILE, READY, Capture, Node, addressed, change
from module_run import run_module


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def test_f12_the_file_is_private_and_only_its_ports_are_reconfigured(node: Node, capsys: Capture) -> None:
    answer = change(capsys)
    assert (answer["failed"], answer["changed"], answer["way_back"]) == (False, True, "armed")
    assert node.file.read_text() == MINE
    assert f"{node.file.stat().st_mode & 0o777:o}" == "600"
    assert node.acts("netplan", "networkctl") == ["netplan generate", "networkctl reload"]
    assert [path.name for path in node.file.parent.iterdir()] == [node.file.name]
    assert answer["diff"]["after"].startswith(MINE)


@pytest.mark.parametrize(
    ("file", "mode", "ports", "changed"),
    [
        (MINE, 0o600, READY, False),
        (MINE, 0o644, READY, True),
        (OLD, 0o600, READY, True),
        (None, 0o600, BARE, True),
        (MINE, 0o600, BARE, True),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_addresses_are_written_only_when_file_or_port_differ(
    node: Node, capsys: Capture, file: str | None, mode: int, ports: str, changed: bool, check: bool
) -> None:
    if file:
        node.file.write_text(file)
        node.file.chmod(mode)
    node.ports(ports)
    node.programs.answer("networkctl_reconfigure", do='cp "$NODE/after" "$NODE/answers/ip_-j_addr"')
    answer = change(capsys, check=check)
    assert (answer["failed"], answer["changed"]) == (False, changed)
    assert bool(node.acts()) == (changed and not check)
    assert (node.file.read_text() if node.file.exists() else None) == (file if check or not changed else MINE)
    assert fabric_record.FILE.exists() == (changed and not check)
    assert answer["way_back"] == ("armed" if changed and not check else "none")


def test_ports_of_others_are_not_our_business(node: Node, capsys: Capture) -> None:
    node.ports(READY)
    node.file.write_text(MINE)
    node.file.chmod(0o600)
    kept = {"netdev": "enP2p1s0f0np0", "address": "10.0.0.1/24", "mtu": 1500}
    assert not change(capsys, ports=[PORT, kept])["changed"]


@pytest.mark.parametrize("before", [OLD, None])
def test_f13_a_timer_of_systemd_takes_the_change_back_when_nobody_confirms(
    node: Node, capsys: Capture, before: str | None
) -> None:
    if before:
        node.file.write_text(before)
    change(capsys)
    (armed,) = node.acts("systemd-run")
    assert "--unit=twinserve-way-back-fabric" in armed and "--on-active=25" in armed
    assert armed.endswith(f"/bin/sh {node.undo}")
    assert not [call for call in node.acts("systemctl") if "stop" in call], "it stays armed"

    subprocess.run(["sh", str(node.undo)], check=True)

    assert (node.file.read_text() if node.file.exists() else None) == before
    assert node.acts("netplan")[-1] == "netplan apply"
    assert "ip addr add 192.0.2.11/24 dev enP7s7" in node.acts("ip")
    assert change(capsys, state="confirmed")["msg"] == "the node has taken the change of the rails back"


def test_f13_a_confirmed_change_can_no_longer_be_taken_back(node: Node, capsys: Capture) -> None:
    change(capsys)
    answer = run_module(rail_addresses, capsys, state="confirmed")
    assert (answer["failed"], answer["way_back"]) == (False, "kept")
    assert node.acts("systemctl") == ["systemctl stop twinserve-way-back-fabric.timer"]
    assert not node.undo.exists()
    assert node.file.read_text() == MINE
    again = run_module(rail_addresses, capsys, state="confirmed")
    assert again["failed"] and "no change of the rails waits to be confirmed" in again["msg"]


def test_a_timer_that_cannot_be_stopped_after_the_confirmation_is_told_with_the_change_kept(
    node: Node, capsys: Capture
) -> None:
    change(capsys)
    node.programs.answer("systemctl_stop", "Failed to connect to bus\n", 1)
    answer = run_module(rail_addresses, capsys, state="confirmed")
    assert (answer["failed"], answer["way_back"]) == (True, "kept")
    assert answer["msg"].startswith("the change is kept, but systemctl stop ")
    assert "Failed to connect to bus" in answer["msg"]
    assert not node.undo.exists()


def test_a_node_that_cannot_say_whether_a_change_waits_does_not_say_that_none_does(
    node: Node, capsys: Capture
) -> None:
    change(capsys)
    node.programs.answer("systemctl_show", "Failed to connect to bus\n", 1)
    answer = run_module(rail_addresses, capsys, state="confirmed")
    assert (answer["failed"], "way_back" in answer) == (True, False)
    assert "Failed to connect to bus" in answer["msg"]


def test_f13_an_undo_that_comes_after_the_confirmation_does_nothing(node: Node, capsys: Capture) -> None:
    change(capsys)
    assert way_back.claim(guard.NAME) is not None
    subprocess.run(["sh", str(node.undo)], check=True, capture_output=True)
    assert node.file.read_text() == MINE


def test_f13_a_management_address_that_blinks_is_waited_for(node: Node, capsys: Capture) -> None:
    node.networkd_sets(shown(enP7s7=("", 24, 1500), enp1s0f0np0=("192.168.177.1", 24, 9000)))
    node.clock.at[1.0] = lambda: node.ports(READY)
    assert not change(capsys)["failed"]
    assert node.file.read_text() == MINE


@pytest.mark.parametrize("before", [OLD, None])
@pytest.mark.parametrize("back", [True, False])
def test_f13_a_management_address_that_stays_away_brings_the_old_file_back(
    node: Node, capsys: Capture, before: str | None, back: bool
) -> None:
    node.networkd_sets(shown(enP7s7=("192.0.2.99", 24, 1500)))
    if before:
        node.file.write_text(before)
    if back:
        (node.root / "node/bare").write_text(BARE)
        node.programs.answer("netplan_apply", do='cp "$NODE/bare" "$NODE/answers/ip_-j_addr"')
    answer = change(capsys)
    text = "management address 192.0.2.11 did not return within 5 s; fabric file rolled back"
    lost = "" if back else ", but this did not bring back 192.0.2.11/24 on enP7s7"
    assert (answer["msg"], answer["way_back"]) == (text + lost, "none")
    assert (node.file.read_text() if node.file.exists() else None) == before
    assert node.clock.now > 5


def test_f13_an_address_that_is_lost_a_moment_later_counts_too(node: Node, capsys: Capture) -> None:
    node.clock.at[0.9] = lambda: node.ports(shown(enp1s0f0np0=("192.168.177.1", 24, 9000)))
    assert "management address 192.0.2.11 did not return" in change(capsys)["msg"]


@pytest.mark.parametrize("port", [("192.168.177.1", 24, 1500), ("192.168.177.1", 25, 9000), ("", 24, 9000)])
def test_a_port_that_does_not_become_what_it_should_is_rolled_back(
    node: Node, capsys: Capture, port: tuple[str, int, int]
) -> None:
    node.networkd_sets(shown(**OFFICE, enp1s0f0np0=port))
    text = "enp1s0f0np0 did not get 192.168.177.1/24 with MTU 9000 within 10 s; fabric file rolled back"
    assert change(capsys)["msg"] == text
    assert not node.file.exists()


def test_a_timer_that_cannot_be_armed_leaves_everything_alone(node: Node, capsys: Capture) -> None:
    node.programs.answer("systemd-run", "Failed to connect to bus\n", 1)
    assert "Failed to connect to bus" in change(capsys)["msg"]
    assert not node.file.exists()
    assert node.acts("netplan", "networkctl") == []


def test_a_timer_that_could_not_be_armed_keeps_no_later_change_away(node: Node, capsys: Capture) -> None:
    node.programs.answer("systemd-run", "Failed to connect to bus\n", 1)
    change(capsys)
    node.programs.answer("systemd-run", do='touch "$NODE/timer"')
    answer = change(capsys)
    assert (answer["failed"], answer["way_back"], node.clock.now < 10) == (False, "armed", True)


def test_what_waits_without_a_timer_is_neither_kept_nor_waited_for(node: Node, capsys: Capture) -> None:
    change(capsys)
    (node.root / "node/timer").unlink()
    began = node.clock.now
    answer = run_module(rail_addresses, capsys, state="confirmed")
    assert (answer["failed"], answer["way_back"]) == (True, "none")
    assert not change(capsys, netplan=OLD, ports=[])["failed"]
    assert node.clock.now - began < 10


def test_a_timer_without_a_change_is_stopped_first(node: Node, capsys: Capture) -> None:
    (node.root / "node/timer").touch()
    assert not change(capsys)["failed"]
    assert node.acts("systemctl", "systemd-run")[0] == "systemctl stop twinserve-way-back-fabric.timer"
    assert node.acts("systemctl", "systemd-run")[1].startswith("systemd-run")


def test_f13_an_undo_of_the_timer_itself_is_told_as_one_that_was_taken(node: Node, capsys: Capture) -> None:
    node.networkd_sets(shown(**OFFICE, enp1s0f0np0=("", 24, 9000)))
    gone = f'[ -e {node.undo.parent}/undone ] || sh {node.undo}; rm -f "$NODE/timer"'
    node.programs.answer("systemctl_start", "Unit twinserve-way-back-fabric.service not found.\n", 5, do=gone)
    text = "enp1s0f0np0 did not get 192.168.177.1/24 with MTU 9000 within 10 s; fabric file rolled back"
    assert change(capsys)["msg"] == text
    assert not node.file.exists()


def test_f13_an_undo_that_does_not_come_to_its_end_is_not_told_as_one(node: Node, capsys: Capture) -> None:
    node.networkd_sets(shown(**OFFICE, enp1s0f0np0=("", 24, 9000)))
    node.programs.answer("systemctl_start", "Connection timed out\n", 1, do='rm -f "$NODE/timer"')
    message = change(capsys)["msg"]
    assert "the way back could not be taken (systemctl start" in message
    assert "Connection timed out" in message


@pytest.mark.parametrize(
    ("bridge", "is_dockers"), [("docker0", True), ("br-0a1b2c3d4e5f", True), ("br-office", False)]
)
def test_f13_a_bridge_that_docker_takes_away_undoes_nothing(
    node: Node, capsys: Capture, bridge: str, is_dockers: bool
) -> None:
    node.ports(shown(**OFFICE, enp1s0f0np0=("", 24, 1500), **{bridge: ("172.18.0.1", 16, 1500)}))
    answer = change(capsys)
    assert answer["failed"] == (not is_dockers)
    assert ("172.18.0.1" in node.undo.read_text()) == (not is_dockers)


def test_a_change_that_still_waits_is_let_go_first(node: Node, capsys: Capture) -> None:
    change(capsys)
    answer = change(capsys, netplan=OLD)
    assert answer["msg"] == "another change of the rails has not ended: run this again in a minute"
    assert node.file.read_text() == MINE


@pytest.mark.parametrize("ends", [True, False])
def test_two_runs_at_once_do_not_change_the_rails_at_once(node: Node, capsys: Capture, ends: bool) -> None:
    way_back.FOLDER.mkdir()
    other = (way_back.FOLDER / "fabric.lock").open("w")
    fcntl.flock(other, fcntl.LOCK_EX)
    if ends:
        node.clock.at[1.0] = other.close
    answer = change(capsys)
    other.close()
    if ends:
        assert (answer["failed"], answer["way_back"]) == (False, "armed")
        return
    assert answer["msg"] == "another change of the rails has not ended: run this again in a minute"
    assert (node.acts(), node.file.exists()) == ([], False)


def test_a_run_that_waited_for_another_looks_at_what_that_one_left(node: Node, capsys: Capture) -> None:
    change(capsys)

    def undone() -> None:
        subprocess.run(["sh", str(node.undo)], check=True)
        node.ports(BARE)

    node.clock.at[node.clock.now + 1.0] = undone
    assert change(capsys)["changed"]
    subprocess.run(["sh", str(node.undo)], check=True)
    assert not node.file.exists()


def test_a_confirmation_leaves_alone_what_another_run_begins(node: Node, capsys: Capture) -> None:
    change(capsys)
    with (way_back.FOLDER / "fabric.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        (node.root / "node/timer").unlink()
        (node.undo.parent / "armed").unlink()
        answer = run_module(rail_addresses, capsys, state="confirmed")
    assert (answer["failed"], answer["way_back"]) == (True, "none")
    assert node.undo.exists()


@pytest.mark.parametrize("state", ["present", "absent"])
def test_f13_no_command_of_a_change_outlasts_its_timer(
    node: Node, capsys: Capture, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    if state == "absent":
        addressed(node, capsys, BARE)
    monkeypatch.setattr(guard, "APPLY", 1.0)
    node.programs.answer("networkctl_reload", do="exec /bin/sleep 3")
    answer = change(capsys, state=state)
    assert answer["failed"]
    assert answer["msg"].startswith("networkctl did not answer within 1 s; ")
    assert LIMIT > 20, "seconds for all commands of a change"


def test_f14_networkmanagers_port_gets_a_profile_of_ours(node: Node, capsys: Capture) -> None:
    node.networkmanager(enp1s0f0np0="connecting (getting IP configuration):Wired connection 3:77-88")
    predicted = change(capsys, check=True, netplan=None, profiles=[PORT])
    assert (predicted["changed"], node.acts()) == (True, [])
    assert "ipv4.addresses: 192.168.177.1/24" in predicted["diff"]["after"]
    answer = change(capsys, netplan=None, profiles=[PORT])
    assert (answer["failed"], answer["way_back"]) == (False, "armed")
    added, up = node.acts("nmcli")
    assert added.startswith("nmcli con add type ethernet con-name twinserve-enp1s0f0np0 ifname enp1s0f0np0 ")
    for words in PROFILE:
        assert words.replace(":", " ") in added
    assert up == "nmcli --wait 10 con up id twinserve-enp1s0f0np0 ifname enp1s0f0np0"
    assert not node.file.exists()

    subprocess.run(["sh", str(node.undo)], check=True)

    assert node.acts("nmcli")[2:] == [
        "nmcli --wait 0 con up uuid 77-88 ifname enp1s0f0np0",
        "nmcli con delete id twinserve-enp1s0f0np0",
    ]


@pytest.mark.parametrize(("mtu", "changed"), [("9000", False), ("1500", True)])
def test_f14_a_profile_of_ours_is_changed_only_when_it_differs(
    node: Node, capsys: Capture, mtu: str, changed: bool
) -> None:
    node.networkmanager(enp1s0f0np0="connected:twinserve-enp1s0f0np0:11-22")
    node.ports(READY)
    node.programs.answer("nmcli_-t_-f_NAME", "twinserve-enp1s0f0np0\nodd\\:name\n")
    fields = ",".join(line.partition(":")[0] for line in PROFILE)
    node.programs.answer(
        f"nmcli_-t_-f_{fields}", "\n".join([*PROFILE[:-1], f"802-3-ethernet.mtu:{mtu}"]) + "\n"
    )
    answer = change(capsys, netplan=None, profiles=[PORT])
    assert (answer["failed"], answer["changed"]) == (False, changed)
    assert [call.split()[2] for call in node.acts("nmcli")] == (["modify", "10"] if changed else [])


@pytest.mark.parametrize(
    ("device", "by"),
    [
        ("connected:Wired connection 3:77", 'NetworkManager profile "Wired connection 3"'),
        ("disconnected::", "outside NetworkManager"),
    ],
)
def test_f14_another_address_that_stays_on_the_port_is_refused_by_name(
    node: Node, capsys: Capture, device: str, by: str
) -> None:
    node.networkmanager(enp1s0f0np0=device)
    both = json.loads(READY)
    both[1]["addr_info"].append({"family": "inet", "local": "169.254.7.9", "prefixlen": 16})
    (node.root / "node/after").write_text(json.dumps(both))
    answer = change(capsys, netplan=None, profiles=[PORT])
    assert answer["msg"] == f"enp1s0f0np0 still has 169.254.7.9/16 from {by}; fabric profiles rolled back"


def test_what_was_before_is_recorded_once_for_each_port(node: Node, capsys: Capture) -> None:
    change(capsys)
    run_module(rail_addresses, capsys, state="confirmed")
    change(capsys, netplan=OLD, ports=[])
    record = fabric_record.load()
    assert record is not None
    assert record["netplan"] is None
    port = record["ports"]["enp1s0f0np0"]
    assert (port["mtu"], port["addresses"], port["up"], port["owner"]) == (1500, [], True, None)
    fabric_record.ensure({"enP7s7"})
    record = fabric_record.load()
    assert record is not None and list(record["ports"]) == ["enP7s7", "enp1s0f0np0"]
    assert record["ports"]["enp1s0f0np0"]["mtu"] == 1500
    assert f"{fabric_record.FILE.stat().st_mode & 0o777:o}" == "600"
