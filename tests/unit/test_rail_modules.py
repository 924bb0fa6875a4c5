"""The modules that touch ports: what they report, predict and leave alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import fabric_record
from ansible_collections.twinserve.pair.plugins.modules import ports_up
from fake_programs import Programs
from module_run import run_module

ADDRESS = {"family": "inet", "local": "192.168.177.1", "prefixlen": 24}
UP = {"ifname": "enp1s0f0np0", "flags": ["UP", "LOWER_UP"], "mtu": 9000, "addr_info": [ADDRESS]}
DOWN = {"ifname": "enp1s0f0np0", "flags": [], "mtu": 1500, "addr_info": []}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    monkeypatch.setattr(fabric_record, "FILE", tmp_path / "record/before.json")
    return Programs(tmp_path, monkeypatch, "ip", "networkctl")


def acts(programs: Programs) -> list[str]:
    """What was asked beside looking."""
    looks = ("ip -j ", "ip -4 route show", "networkctl status")
    return [call for call in programs.calls if not call.startswith(looks)]


def test_a_port_that_is_down_is_set_up(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    programs.answer("ip_-j_addr", json.dumps([DOWN]))
    predicted = run_module(ports_up, capsys, check=True, netdevs=["enp1s0f0np0"])
    assert (predicted["changed"], acts(programs)) == (True, [])
    assert predicted["diff"] == {"before": "enp1s0f0np0: down\n", "after": "enp1s0f0np0: up\n"}
    up = json.dumps([UP])
    programs.answer("ip_link_set", do=f"echo '{up}' > \"$NODE/answers/ip_-j_addr\"")
    done = run_module(ports_up, capsys, netdevs=["enp1s0f0np0"])
    assert (done["changed"], done["carrier"]) == (True, ["enp1s0f0np0"])
    assert acts(programs) == ["ip link set enp1s0f0np0 up"]
    assert not run_module(ports_up, capsys, netdevs=["enp1s0f0np0"])["changed"]


def test_a_port_that_cannot_be_set_up_is_told(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    programs.answer("ip_-j_addr", json.dumps([DOWN]))
    programs.answer("ip_link_set", "RTNETLINK answers: Operation not permitted\n", 2)
    answer = run_module(ports_up, capsys, netdevs=["enp1s0f0np0"])
    assert answer["failed"]
    assert "Operation not permitted" in answer["msg"]
