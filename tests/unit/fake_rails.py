"""A node whose rails are changed: its programs, its files below a folder of the test, and its clock."""

from __future__ import annotations

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


Capture = pytest.CaptureFixture[str]


def change(capsys: Capture, check: bool = False, **args: Any) -> dict[str, Any]:
    return run_module(rail_addresses, capsys, check=check, **{"netplan": MINE, "ports": [PORT], **args})


def addressed(node: Node, capsys: Capture, before: str) -> None:
    """The node after a change of ours that was confirmed."""
    node.ports(before)
    change(capsys)
    run_module(rail_addresses, capsys, state="confirmed")
    (node.root / "node/calls").unlink()
