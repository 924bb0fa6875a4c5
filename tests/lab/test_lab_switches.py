"""`lab engine` and the ends of a host."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from twinlab.engine import parse_switches, read_switches, write_switches
from twinlab.errors import LabError
from twinlab.image_store import configured
from twinlab.layout import Host
from twinlab.supervisor import is_reboot


def test_values_are_json_where_they_can_be() -> None:
    assert parse_switches(["load_seconds=3", "fail=true", "mode=refuse", 'at=["a"]', "note=a=b"]) == {
        "load_seconds": 3,
        "fail": True,
        "mode": "refuse",
        "at": ["a"],
        "note": "a=b",
    }


@pytest.mark.parametrize("word", ["load_seconds", "=3"])
def test_a_word_without_key_or_value(word: str) -> None:
    with pytest.raises(LabError, match="write KEY=VALUE"):
        parse_switches([word])


def test_switches_are_kept_in_the_hosts_folder(tmp_path: Path) -> None:
    host = Host("spark-a", 1, tmp_path, "", "")
    assert read_switches(host) == {}
    write_switches(host, {"fail": True})
    assert read_switches(host) == {"fail": True}
    assert [file.name for file in (tmp_path / "engine").iterdir()] == ["switches.json"]


def test_dockers_store_is_chosen_and_the_rest_of_its_configuration_stays() -> None:
    before = json.dumps({"default-runtime": "lab", "features": {"buildkit": True}})
    chosen = configured(before, "containerd")
    assert json.loads(chosen) == {
        "default-runtime": "lab",
        "features": {"buildkit": True, "containerd-snapshotter": True},
    }
    assert json.loads(configured(chosen, "overlay2"))["features"]["containerd-snapshotter"] is False


@pytest.mark.parametrize(
    ("status", "again"),
    [
        (signal.SIGHUP, True),  # reboot(2) in a pid namespace ends its init so
        ((128 + signal.SIGHUP) << 8, True),
        (signal.SIGINT, False),  # power off
        (signal.SIGKILL, False),  # power cut
        (0, False),
    ],
)
def test_only_a_reboot_boots_again(status: int, again: bool) -> None:
    assert is_reboot(status) is again
