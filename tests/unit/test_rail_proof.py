"""The module that proves a node's rails: what it measures, what it refuses, what it warns of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_sysfs as fake
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import port_check, sysfs
from ansible_collections.twinserve.pair.plugins.module_utils.gids import mapped
from ansible_collections.twinserve.pair.plugins.module_utils.reach import Reached, Target
from ansible_collections.twinserve.pair.plugins.modules import rail_proof
from module_run import run_module

RAIL: dict[str, Any] = {
    "rail": 0,
    "netdev": "enp1s0f1np1",
    "hca": "rocep1s0f1",
    "address": "198.51.100.1/24",
    "mtu": 9000,
    "peers": ["198.51.100.2"],
}
TABLE = fake.table_of("198.51.100.1")


def devices(
    root: Path, table: fake.Table = TABLE, state: str = "4: ACTIVE", **port: Any
) -> list[sysfs.Device]:
    fake.add_port(root, "enp1s0f1np1", **port)
    fake.add_device(root, "rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", table, state=state)
    # An empty table tells no port; its PCI function does.
    fake.put(root / "sys/0000:01:00.1/net/enp1s0f1np1/operstate", "up")
    return sysfs.read_devices(root, {"enp1s0f1np1": ["198.51.100.1/24"]})


def answering(ok: bool) -> Callable[[list[Target]], list[Reached]]:
    def reach(targets: list[Target]) -> list[Reached]:
        return [Reached(one.netdev, one.target, ok, f"{one.mtu - 28} bytes") for one in targets]

    return reach


def prove(found: list[sysfs.Device], expected: int | None = None, **rail: Any) -> dict[str, Any]:
    (proved,) = rail_proof.prove([{**RAIL, **rail}], found, expected)
    return proved


@pytest.fixture(autouse=True)
def good_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """All peers answer, the kernel log is empty, nobody waits."""
    monkeypatch.setattr(rail_proof, "reach", answering(True))
    monkeypatch.setattr(port_check.port_problem, "__defaults__", (lambda: None,))
    monkeypatch.setattr("time.sleep", lambda seconds: None)


LINK_LOCAL_ONLY = {0: (fake.LINK_LOCAL, fake.V1), 1: (fake.LINK_LOCAL, fake.V2)}
NO_GID = "rocep1s0f1 has no RoCE v2 GID for 198.51.100.1 (found: {})"


@pytest.mark.parametrize(
    ("table", "index", "problem"),
    [
        pytest.param(TABLE, 3, "", id="at-3"),
        pytest.param(fake.table_of("198.51.100.1", 5), 5, "", id="at-5"),
        pytest.param(
            LINK_LOCAL_ONLY, None, NO_GID.format("0 link-local v1, 1 link-local v2"), id="link-local"
        ),
        pytest.param(
            {2: (mapped("198.51.100.1"), fake.V1)}, None, NO_GID.format("2 198.51.100.1 v1"), id="v1"
        ),
        pytest.param({}, None, NO_GID.format("empty"), id="empty"),
    ],
)
def test_f01_the_gid_is_the_own_addresss_by_value_and_type(
    tmp_path: Path, table: fake.Table, index: int | None, problem: str
) -> None:
    proved = prove(devices(tmp_path, table))
    assert (proved["gid_index"], proved["problem"]) == (index, problem)


@pytest.mark.parametrize(
    ("state", "port", "problem"),
    [
        ("1: DOWN", {}, "rocep1s0f1 is DOWN, not ACTIVE"),
        ("2: INIT", {}, "rocep1s0f1 is INIT, not ACTIVE"),
        ("4: ACTIVE", {"mtu": 1500}, "enp1s0f1np1 has MTU 1500, not 9000"),
        (
            "1: DOWN",
            {"operstate": "down"},
            "enp1s0f1np1 has no carrier: look at the cable, and whether the other node is on",
        ),
    ],
)
def test_state_carrier_and_mtu_are_looked_at_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, port: dict[str, Any], problem: str
) -> None:
    monkeypatch.setattr(rail_proof, "reach", lambda targets: pytest.fail("sent"))
    assert prove(devices(tmp_path, state=state, **port))["problem"] == problem


def test_f09_a_peer_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rail_proof, "reach", answering(False))
    proved = prove(devices(tmp_path))
    assert proved["problem"] == "enp1s0f1np1 (MTU 9000) does not reach 198.51.100.2: 8972 bytes"
    assert proved["measured"]["reached"] == [{"target": "198.51.100.2", "ok": False, "detail": "8972 bytes"}]


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (
            "AER: Uncorrectable (Fatal)",
            "RoCE device of enp1s0f1np1 is gone (PCIe error in the kernel log): power-cycle the node",
        ),
        (
            None,
            "RoCE device of enp1s0f1np1 is gone: look at rdma link; if it stays away, power-cycle the node",
        ),
    ],
)
def test_f23_a_device_that_is_gone_is_named_with_the_power_cycle(
    monkeypatch: pytest.MonkeyPatch, error: str | None, problem: str
) -> None:
    monkeypatch.setattr(port_check.port_problem, "__defaults__", (lambda: error,))
    proved = prove([])
    assert proved["problem"] == problem
    assert (proved["gid_index"], proved["measured"]["speed"]) == (None, None)


@pytest.mark.parametrize(
    ("speed", "expected", "warnings"),
    [
        pytest.param("200000", 200, [], id="as-expected"),
        pytest.param("400000", 200, [], id="faster"),
        pytest.param(
            "100000", 200, ["enp1s0f1np1 runs at 100 Gb/s, 200 are expected (fabric_speed)"], id="slower"
        ),
        pytest.param("100000", None, [], id="nothing-is-expected"),
        pytest.param(None, 200, [], id="unknown"),
        pytest.param("-1", 200, [], id="unknown-as-the-kernel-says"),
    ],
)
def test_a_slow_port_is_warned_of_and_an_unknown_speed_is_not_judged(
    tmp_path: Path, speed: str | None, expected: int | None, warnings: list[str]
) -> None:
    proved = prove(devices(tmp_path, speed=speed), expected)
    assert (proved["warnings"], proved["problem"]) == (warnings, "")


def test_f10_a_rail_that_shares_its_subnet_is_asked_by_arp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Target] = []

    def reach(targets: list[Target]) -> list[Reached]:
        asked.extend(targets)
        return answering(True)(targets)

    monkeypatch.setattr(rail_proof, "reach", reach)
    proved = prove(devices(tmp_path), shares_subnet=True, macs={"198.51.100.2": "4c:bb:47:00:02:10"})
    assert asked == [
        Target("enp1s0f1np1", "198.51.100.2", 9000, arp_from="198.51.100.1", mac="4c:bb:47:00:02:10")
    ]
    assert proved["measured"]["sent"] == "9000 bytes by ARP"


def test_what_was_measured_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = devices(tmp_path)
    counted = [{"symbol_error": 7, "packet_seq_err": 1}, {"symbol_error": 7, "packet_seq_err": 4}]
    monkeypatch.setattr(rail_proof, "read_devices", lambda: found)
    monkeypatch.setattr(rail_proof, "count", lambda hca: counted.pop(0))
    answer = run_module(rail_proof, capsys, rails=[RAIL], expected_speed=200)
    (rail,) = answer["rails"]
    assert {name: rail[name] for name in RAIL} == RAIL
    assert (answer["changed"], rail["gid_index"], rail["problem"]) == (False, 3, "")
    assert rail["measured"] == {
        "state": "ACTIVE",
        "carrier": True,
        "speed": 200.0,
        "mtu": 9000,
        "sent": "8972 bytes",
        "reached": [{"target": "198.51.100.2", "ok": True, "detail": "8972 bytes"}],
        "counters": {"symbol_error": 7, "packet_seq_err": 4},
        "risen": {"packet_seq_err": 3},
    }
    assert rail["warnings"] == [
        "rocep1s0f1 packet_seq_err (the peer missed packets and asked for them again) rose by 3"
        " during the proof"
    ]


def test_a_gid_that_appears_late_is_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = [[], [], devices(tmp_path)]
    monkeypatch.setattr(rail_proof, "read_devices", lambda: late.pop(0))
    answer = run_module(rail_proof, capsys, rails=[RAIL])
    assert (answer["changed"], answer["rails"][0]["problem"], late) == (False, "", [])


def test_patience_ends(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rail_proof, "read_devices", list)
    answer = run_module(rail_proof, capsys, rails=[RAIL], patience=0)
    assert answer["rails"][0]["problem"].startswith("RoCE device of enp1s0f1np1 is gone")
