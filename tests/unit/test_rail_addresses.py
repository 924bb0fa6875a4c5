"""Changing the rails of a node: what stays when it works, what comes back when not, what absent restores."""

from __future__ import annotations

import fcntl
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import (
    fabric_record,
    guard,
    netplan_file,
    netplan_merge,
    port_state,
    way_back,
)
from ansible_collections.twinserve.pair.plugins.modules import rail_addresses
from fake_ports import Clock, shown
from fake_programs import Programs
from module_run import run_module

PORT = {"netdev": "enp1s0f0np0", "address": "192.168.177.1/24", "mtu": 9000}
OFFICE = {"enP7s7": ("192.0.2.11", 24, 1500)}
MINE = "# Written by Twinserve\nnetwork:\n  ethernets:\n    enp1s0f0np0:\n      mtu: 9000\n"
OLD = MINE.replace("9000", "4000")
BARE = shown(**OFFICE, enp1s0f0np0=("", 24, 1500))
READY = shown(**OFFICE, enp1s0f0np0=("192.168.177.1", 24, 9000))
MADE = "[Match]\nName=enp1s0f0np0\n[Link]\nMTUBytes=9000\n[Network]\nAddress=192.168.177.1/24\n"
PROFILE = [
    "connection.interface-name:enp1s0f0np0",
    "connection.autoconnect:yes",
    "connection.autoconnect-priority:100",
    "ipv4.method:manual",
    "ipv4.addresses:192.168.177.1/24",
    "ipv4.never-default:yes",
    "ipv6.method:disabled",
    "802-3-ethernet.mtu:9000",
]


class Node:
    """A node whose programs play networkd, NetworkManager and systemd's timers."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.monkeypatch = root, monkeypatch
        names = ("ip", "netplan", "networkctl", "nmcli", "systemctl", "systemd-run", "sleep")
        self.programs = Programs(root / "node", monkeypatch, *names)
        self.file = root / "etc/netplan/60-twinserve-fabric.yaml"
        self.undo = root / "way-back/fabric/undo"
        self.file.parent.mkdir(parents=True)
        monkeypatch.setattr(netplan_file, "FILE", self.file)
        monkeypatch.setattr(netplan_file, "GENERATORS", ())
        monkeypatch.setattr(netplan_file, "FOLDERS", (self.file.parent,))
        monkeypatch.setattr(netplan_merge, "LIVE", root / "run")
        monkeypatch.setattr(netplan_merge, "NETWORKD", (root / "a", root / "b"))
        monkeypatch.setattr(way_back, "FOLDER", root / "way-back")
        monkeypatch.setattr(fabric_record, "FILE", root / "record/before.json")
        monkeypatch.setattr(port_state, "SYSCTL_ROOT", root / "sysctl")
        self.clock = Clock()
        for module in (guard, way_back):
            monkeypatch.setattr(module, "time", self.clock)
        self.ports(BARE)
        (root / "node/made").write_text(MADE)
        made = "$3/run/systemd/network/10-netplan-enp1s0f0np0.network"
        merged = f'mkdir -p "${{3}}/run/systemd/network"; cp "$NODE/made" "{made}"'
        self.programs.answer("netplan_generate_--root-dir", do=merged)
        self.programs.answer("systemd-run", do='touch "$NODE/timer"')
        self.programs.answer("systemctl_start", do=f'sh {self.undo}; rm -f "$NODE/timer"')
        self.programs.answer("systemctl_stop", do='rm -f "$NODE/timer"')
        self.programs.answer(
            "systemctl_show", do='[ ! -e "$NODE/timer" ] || printf "active\\n\\ninactive\\n"'
        )
        self.networkd_sets(READY)

    def ports(self, text: str) -> None:
        self.programs.answer("ip_-j_addr", text)

    def networkd_sets(self, text: str) -> None:
        """What the ports look like once networkd has read new files."""
        (self.root / "node/after").write_text(text)
        self.programs.answer("networkctl_reload", do='cp "$NODE/after" "$NODE/answers/ip_-j_addr"')

    def networkmanager(self, **ports: str) -> None:
        """Let NetworkManager run, with each port's state, profile and uuid in the form of `nmcli -t`."""
        lines = [f"{netdev}:{rest}" for netdev, rest in ports.items()]
        self.programs.answer("nmcli_-t_-f_RUNNING", "running\n")
        self.programs.answer("nmcli_-t_-f_DEVICE,STATE,CONNECTION,CON-UUID", "\n".join(lines) + "\n")
        (self.root / "node/after").write_text(READY)
        up = 'case "$*" in *twinserve*) cp "$NODE/after" "$NODE/answers/ip_-j_addr";; esac'
        self.programs.answer("nmcli_--wait_10_con_up", do=up)

    def acts(self, *programs: str) -> list[str]:
        """What was asked of these programs beside looking."""
        looks = (
            "systemctl show",
            "ip -j",
            "ip -4 route show",
            "networkctl status",
            "nmcli -t",
            "netplan generate --root-dir",
        )
        calls = [call for call in self.programs.calls if not call.startswith(looks)]
        return [call for call in calls if not programs or call.split()[0] in programs]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


Capture = pytest.CaptureFixture[str]


def change(capsys: Capture, check: bool = False, **args: Any) -> dict[str, Any]:
    return run_module(rail_addresses, capsys, check=check, **{"netplan": MINE, "ports": [PORT], **args})


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
    assert change(capsys, state="confirmed")["msg"] == "the node has taken the change of its rails back"


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
    assert guard.LIMIT > 20, "seconds for all commands of a change"


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


def addressed(node: Node, capsys: Capture, before: str) -> None:
    """The node after a change of ours that was confirmed."""
    node.ports(before)
    change(capsys)
    run_module(rail_addresses, capsys, state="confirmed")
    (node.root / "node/calls").unlink()


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
