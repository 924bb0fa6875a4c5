"""The modules that touch ports: what they report, predict and leave alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fake_sysfs as fake
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import fabric_record, sysfs
from ansible_collections.twinserve.pair.plugins.module_utils.reach import Reached, Target
from ansible_collections.twinserve.pair.plugins.modules import ports_up, rail_proof
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


RAIL: dict[str, Any] = {
    "netdev": "enp1s0f1np1",
    "hca": "rocep1s0f1",
    "address": "198.51.100.1/24",
    "mtu": 9000,
    "peers": ["198.51.100.2"],
}


def devices(root: Path, table: fake.Table, state: str = "4: ACTIVE") -> list[sysfs.Device]:
    fake.add_port(root, "enp1s0f1np1")
    fake.add_device(root, "rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", table, state=state)
    return sysfs.read_devices(root, {"enp1s0f1np1": ["198.51.100.1/24"]})


def answering(ok: bool) -> Any:
    def reach(targets: list[Target]) -> list[Reached]:
        return [Reached(one.netdev, one.target, ok, f"{one.mtu - 28} bytes") for one in targets]

    return reach


@pytest.mark.parametrize(
    ("table", "state", "ok", "index", "problem"),
    [
        (fake.table_of("198.51.100.1"), "4: ACTIVE", True, 3, ""),
        (fake.table_of("198.51.100.1", 5), "4: ACTIVE", True, 5, ""),
        (fake.table_of("198.51.100.1"), "1: DOWN", True, 3, "rocep1s0f1 is DOWN, enp1s0f1np1 is up"),
        (
            {0: (fake.LINK_LOCAL, fake.V1), 1: (fake.LINK_LOCAL, fake.V2)},
            "4: ACTIVE",
            True,
            None,
            "rocep1s0f1 has no RoCE v2 GID for 198.51.100.1 (found: 0 link-local v1, 1 link-local v2)",
        ),
        (
            fake.table_of("198.51.100.1"),
            "4: ACTIVE",
            False,
            3,
            "enp1s0f1np1 (MTU 9000) does not reach 198.51.100.2: 8972 bytes",
        ),
    ],
)
def test_f01_a_rail_is_proved_by_device_gid_and_full_size_packets(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: fake.Table,
    state: str,
    ok: bool,
    index: int | None,
    problem: str,
) -> None:
    monkeypatch.setattr(rail_proof, "reach", answering(ok))
    (proved,) = rail_proof.prove([dict(RAIL)], devices(tmp_path, table, state))
    assert (proved["gid_index"], proved["problem"]) == (index, problem)


def test_f23_a_device_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rail_proof, "reach", answering(True))
    (proved,) = rail_proof.prove([dict(RAIL)], [])
    assert proved["problem"] == "RoCE device rocep1s0f1 of enp1s0f1np1 is gone"


def test_a_gid_that_appears_late_is_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = [[], [], devices(tmp_path, fake.table_of("198.51.100.1"))]
    monkeypatch.setattr(rail_proof, "read_devices", lambda: late.pop(0))
    monkeypatch.setattr(rail_proof, "reach", answering(True))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    answer = run_module(rail_proof, capsys, rails=[RAIL])
    assert (answer["changed"], answer["rails"][0]["problem"], late) == (False, "", [])


def test_patience_ends(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rail_proof, "read_devices", list)
    answer = run_module(rail_proof, capsys, rails=[RAIL], patience=0)
    assert answer["rails"][0]["problem"] == "RoCE device rocep1s0f1 of enp1s0f1np1 is gone"
