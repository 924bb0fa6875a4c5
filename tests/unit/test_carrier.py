"""Ports that are set up, and how long their carrier is waited for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import carrier
from fake_ports import Clock, shown
from fake_programs import Programs

READY = shown(enP7s7=("192.0.2.11", 24, 1500), enp1s0f0np0=("192.168.177.1", 24, 9000))


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    programs = Programs(tmp_path / "node", monkeypatch, "ip")
    programs.answer("ip_-j_addr", READY)
    return programs


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(carrier, "time", clock)
    return clock


def test_ports_are_given_time_to_find_their_peer(programs: Programs, clock: Clock) -> None:
    dark = json.loads(READY)
    dark[1]["flags"] = ["UP"]
    programs.answer("ip_-j_addr", json.dumps(dark))
    assert carrier.bring_up(["enp1s0f0np0"]) == []
    assert 10 <= clock.now < 11
    began = clock.now
    clock.at[began + 3] = lambda: programs.answer("ip_-j_addr", READY)
    assert carrier.bring_up(["enp1s0f0np0"]) == ["enp1s0f0np0"]
    assert 3 <= clock.now - began < 4
    assert "ip link set enp1s0f0np0 up" in programs.calls


def test_a_port_without_a_cable_is_not_waited_for_as_long_as_one_that_may_come(
    programs: Programs, clock: Clock
) -> None:
    both = json.loads(READY)
    both.append({**both[1], "ifname": "enp1s0f1np1", "flags": ["UP"]})
    programs.answer("ip_-j_addr", json.dumps(both))
    assert carrier.bring_up(["enp1s0f0np0", "enp1s0f1np1"]) == ["enp1s0f0np0"]
    assert 2 <= clock.now < 3
