"""Putting a netplan file live: what stays when it works, and what comes back when it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import netplan_apply
from ansible_collections.twinserve.pair.plugins.module_utils.netplan_apply import ApplyError, apply_file
from fake_programs import Programs

PORT = {"netdev": "enp1s0f0np0", "address": "192.168.177.1/24", "mtu": 9000}
OFFICE = {"enP7s7": ("192.0.2.11", 24, 1500)}


def shown(**ports: tuple[str, int, int]) -> str:
    """What `ip -j addr` prints: address, prefix length and MTU by port; an empty address is none."""
    links: list[dict[str, Any]] = []
    for name, (address, length, mtu) in ports.items():
        info = [{"family": "inet", "local": address, "prefixlen": length}] if address else []
        links.append({"ifname": name, "flags": ["UP", "LOWER_UP"], "mtu": mtu, "addr_info": info})
    return json.dumps(links)


READY = shown(**OFFICE, enp1s0f0np0=("192.168.177.1", 24, 9000))


class Clock:
    """Time that passes only while somebody sleeps; `at` says what happens then."""

    def __init__(self) -> None:
        self.now = 0.0
        self.at: dict[float, Any] = {}

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for moment in [one for one in self.at if one <= self.now]:
            self.at.pop(moment)()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    programs = Programs(tmp_path / "node", monkeypatch, "ip", "netplan", "systemd-run", "systemctl")
    programs.answer("ip_-j_addr", READY)
    return programs


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(netplan_apply, "time", clock)
    return clock


def lose(programs: Programs, after: str) -> None:
    """Let `netplan apply` leave the node with what `after` shows."""
    (programs.folder / "after").write_text(after)
    programs.answer("netplan_apply", do='cp "$NODE/after" "$NODE/answers/ip_-j_addr"')


def test_f12_the_file_is_private_and_checked_before_it_is_applied(
    tmp_path: Path, programs: Programs, clock: Clock
) -> None:
    path = tmp_path / "60-twinserve-fabric.yaml"
    apply_file(path, "new\n", [PORT])
    assert path.read_text() == "new\n"
    assert f"{path.stat().st_mode & 0o777:o}" == "600"
    assert [call for call in programs.calls if call.startswith("netplan")] == [
        "netplan generate",
        "netplan apply",
    ]
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == [path.name]


@pytest.mark.parametrize(("before", "undo"), [("old\n", "mv "), (None, "rm -f ")])
def test_f13_a_timer_of_systemd_takes_the_file_back_when_nobody_else_can(
    tmp_path: Path, programs: Programs, clock: Clock, before: str | None, undo: str
) -> None:
    path = tmp_path / "fabric.yaml"
    if before:
        path.write_text(before)
    programs.answer("netplan_apply", do=f'cat "{tmp_path}"/fabric.before > "$NODE/seen" 2>/dev/null || :')

    apply_file(path, "new\n", [PORT])

    armed, *applied, disarmed = [call for call in programs.calls if not call.startswith("ip ")]
    assert armed.startswith("systemd-run ") and "--on-active=120" in armed
    assert f"{undo}{tmp_path}/fabric" in armed and armed.endswith("netplan apply")
    assert applied == ["netplan generate", "netplan apply"]
    assert disarmed == "systemctl stop twinserve-way-back-fabric.timer"
    assert (programs.folder / "seen").read_text() == (before or "")


def test_f13_a_management_address_that_blinks_is_waited_for(
    tmp_path: Path, programs: Programs, clock: Clock
) -> None:
    lose(programs, shown(enP7s7=("", 24, 1500)))
    clock.at[1.0] = lambda: programs.answer("ip_-j_addr", READY)
    path = tmp_path / "fabric.yaml"
    apply_file(path, "new\n", [PORT])
    assert path.read_text() == "new\n"


@pytest.mark.parametrize("before", ["old\n", None])
def test_f13_a_management_address_that_stays_away_brings_the_old_file_back(
    tmp_path: Path, programs: Programs, clock: Clock, before: str | None
) -> None:
    lose(programs, shown(enP7s7=("192.0.2.99", 24, 1500)))
    path = tmp_path / "fabric.yaml"
    if before:
        path.write_text(before)
    with pytest.raises(ApplyError) as caught:
        apply_file(path, "new\n", [PORT])
    assert str(caught.value) == (
        "management address 192.0.2.11 did not return within 5 s; fabric file rolled back"
    )
    assert (path.read_text() if path.exists() else None) == before
    assert [call for call in programs.calls if call.startswith("netplan")][-1] == "netplan apply"
    assert 5 < clock.now < 6


@pytest.mark.parametrize("port", [("192.168.177.1", 24, 1500), ("192.168.177.1", 25, 9000), ("", 24, 9000)])
def test_a_port_that_does_not_become_what_it_should_is_rolled_back(
    tmp_path: Path, programs: Programs, clock: Clock, port: tuple[str, int, int]
) -> None:
    programs.answer("ip_-j_addr", shown(**OFFICE, enp1s0f0np0=port))
    with pytest.raises(ApplyError, match="enp1s0f0np0 did not get 192.168.177.1/24 within 15 s"):
        apply_file(tmp_path / "fabric.yaml", "new\n", [PORT])
    assert not (tmp_path / "fabric.yaml").exists()


def test_a_file_that_netplan_refuses_is_never_applied(
    tmp_path: Path, programs: Programs, clock: Clock
) -> None:
    programs.answer("netplan_generate", "fabric.yaml:4: Error in network definition\n", 1)
    path = tmp_path / "fabric.yaml"
    path.write_text("old\n")
    with pytest.raises(ApplyError, match="Error in network definition .*; fabric file rolled back"):
        apply_file(path, "new\n", [PORT])
    assert path.read_text() == "old\n"


def test_ports_are_given_time_to_find_their_peer(programs: Programs, clock: Clock) -> None:
    dark = json.loads(READY)
    dark[1]["flags"] = ["UP"]
    programs.answer("ip_-j_addr", json.dumps(dark))
    assert netplan_apply.bring_up(["enp1s0f0np0"]) == []
    assert 10 <= clock.now < 11
    began = clock.now
    clock.at[began + 3] = lambda: programs.answer("ip_-j_addr", READY)
    assert netplan_apply.bring_up(["enp1s0f0np0"]) == ["enp1s0f0np0"]
    assert 3 <= clock.now - began < 4
    assert "ip link set enp1s0f0np0 up" in programs.calls


def test_a_port_without_a_cable_is_not_waited_for_as_long_as_one_that_may_come(
    programs: Programs, clock: Clock
) -> None:
    both = json.loads(READY)
    both.append({**both[1], "ifname": "enp1s0f1np1", "flags": ["UP"]})
    programs.answer("ip_-j_addr", json.dumps(both))
    assert netplan_apply.bring_up(["enp1s0f0np0", "enp1s0f1np1"]) == ["enp1s0f0np0"]
    assert 2 <= clock.now < 3
