"""Our units as systemd shows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.services import (
    pair_started,
    parse_show,
    read_services,
)
from fake_programs import Programs

SHOWN = """Id=twinserve.service
ActiveState=active
StatusText=serving: 2 rails = all

Id=twinserve-rank.service
ActiveState=inactive
"""


def test_one_block_a_unit() -> None:
    first, second = parse_show(SHOWN)
    assert first["StatusText"] == "serving: 2 rails = all"
    assert second == {"Id": "twinserve-rank.service", "ActiveState": "inactive"}
    assert parse_show("\n\n") == []


def test_all_units_are_asked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(tmp_path, monkeypatch, "systemctl")
    programs.answer("systemctl_show", SHOWN)
    assert {name: unit["ActiveState"] for name, unit in read_services().items()} == {
        "twinserve.service": "active",
        "twinserve-rank.service": "inactive",
    }
    (call,) = programs.calls
    assert call.startswith(
        "systemctl show twinserve.service twinserve-rank.service twinserve-gateway.service --prop"
    )


@pytest.mark.parametrize(
    ("supervisor", "rank", "started"),
    [
        ("active", "active", True),
        ("active", "inactive", True),
        ("inactive", "deactivating", False),
        ("failed", "activating", True),
        ("inactive", "inactive", False),
    ],
)
def test_a_pair_is_started_while_its_supervisor_or_a_rank_runs(
    supervisor: str, rank: str, started: bool
) -> None:
    units = {"twinserve.service": supervisor, "twinserve-rank.service": rank}
    node = {"services": {name: {"ActiveState": state} for name, state in units.items()}}
    assert pair_started(node) is started
    assert pair_started({"services": None}) is False
