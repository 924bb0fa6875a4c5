"""Error counters of a port: which are read, and what a rise says."""

from __future__ import annotations

from pathlib import Path

import fake_sysfs as fake
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.counters import describe, read_counters, rise


def test_error_counters_of_both_folders_are_read_and_traffic_is_not(tmp_path: Path) -> None:
    fake.set_counters(tmp_path, "rocep1s0f1", symbol_error=3, port_rcv_data=10**12, link_downed=1)
    fake.set_counters(tmp_path, "rocep1s0f1", packet_seq_err=0, np_cnp_sent=7, rx_write_requests=5)
    port = tmp_path / "sys/class/infiniband/rocep1s0f1/ports/1"
    assert read_counters(port) == {"symbol_error": 3, "link_downed": 1, "packet_seq_err": 0}
    assert read_counters(tmp_path) == {}


@pytest.mark.parametrize(
    "name", ["port_rcv_errors", "port_xmit_discards", "symbol_error", "link_error_recovery", "link_downed"]
)
def test_the_five_of_the_stations_recipe_are_among_them(tmp_path: Path, name: str) -> None:
    fake.put(tmp_path / "counters" / name, "1")
    assert read_counters(tmp_path) == {name: 1}


@pytest.mark.parametrize(
    ("before", "after", "rose"),
    [
        pytest.param({"symbol_error": 7}, {"symbol_error": 7}, {}, id="old-errors-say-nothing"),
        pytest.param({"symbol_error": 7}, {"symbol_error": 10}, {"symbol_error": 3}, id="rose"),
        pytest.param({"symbol_error": 7}, {"symbol_error": 0}, {}, id="the-driver-began-anew"),
        pytest.param({}, {"symbol_error": 4}, {}, id="was-not-there-before"),
        pytest.param({"symbol_error": 7}, {}, {}, id="is-gone"),
    ],
)
def test_only_a_rise_counts(before: dict[str, int], after: dict[str, int], rose: dict[str, int]) -> None:
    assert rise(before, after) == rose


def test_a_rise_is_told_with_its_meaning() -> None:
    assert describe({"packet_seq_err": 12}) == [
        "packet_seq_err (the peer missed packets and asked for them again) rose by 12"
    ]
