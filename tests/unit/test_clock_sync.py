"""A clock that no time server sets is warned of, with the cure; it keeps no pair from serving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import clock_sync
from ansible_collections.twinserve.pair.plugins.module_utils.node_faults import faults, warnings
from ansible_collections.twinserve.pair.plugins.module_utils.shell import CommandError
from fake_programs import Programs
from probes import link
from test_node_faults import RELEASE, SETTINGS, node

OFF = "its clock is not synchronised (timedatectl): TLS, tokens and the times in logs depend on it"
TIMESYNC = (
    "ServerName=ntp.example.org\nServerAddress=172.17.4.2\nSystemNTPServers=ntp.example.org 192.0.2.123\n"
)
CHRONY = "^,?,172.17.4.9,0,6,0,4294967295,0.0,0.0,0.0\n^,*,192.0.2.123,2,6,377,12,0.001,0.001,0.01\n"


def clock(synchronized: bool | None, enabled: bool | None = True, *servers: str) -> dict[str, Any]:
    return {"synchronized": synchronized, "enabled": enabled, "servers": list(servers)}


def network(**addresses: str) -> dict[str, Any]:
    """The ports of a node, by name (`_` for `-`)."""
    return {"links": {name.replace("_", "-"): link(one) for name, one in addresses.items()}}


@pytest.mark.parametrize(
    ("seen", "network", "said"),
    [
        pytest.param(clock(True), {}, None, id="synchronised"),
        pytest.param(clock(None, None), {}, None, id="unknown"),
        pytest.param(None, {}, None, id="no timedatectl"),
        pytest.param(clock(False, False), {}, "sudo timedatectl set-ntp true", id="switched off"),
        pytest.param(
            clock(False),
            {},
            "it knows no time server: set one that it reaches (UDP 123) in /etc/systemd/timesyncd.conf",
            id="no server",
        ),
        pytest.param(
            clock(False, True, "192.0.2.123", "2001:db8::123"),
            network(docker0="172.17.0.1/16", enP7s7="192.0.2.11/24"),
            "its time server 192.0.2.123, 2001:db8::123 gives no answer: ",
            id="no answer",
        ),
        pytest.param(
            clock(False, True, "192.0.2.123", "172.17.4.2"),
            network(enP7s7="192.0.2.11/24", docker0="172.17.0.1/16"),
            "its time server 172.17.4.2 lies in the network of docker0 (172.17.0.1/16), so it is looked for "
            "among the containers: sudo ip route add 172.17.4.2 via GATEWAY, or give Docker another network "
            "(bip in /etc/docker/daemon.json)",
            id="hidden by Docker",
        ),
        pytest.param(
            clock(False, True, "172.18.0.7"),
            network(br_0123456789ab="172.18.0.1/16"),
            "its time server 172.18.0.7 lies in the network of br-0123456789ab (172.18.0.1/16), ",
            id="hidden by a network of Docker's",
        ),
    ],
)
def test_a_clock_that_nobody_sets_is_warned_of(
    seen: dict[str, Any] | None, network: dict[str, Any], said: str | None
) -> None:
    probed = node(clock=seen, network=network)
    told = warnings(probed, 1, SETTINGS, RELEASE)
    assert [text.startswith(f"warn worker: {OFF}; {said}") for text in told] == ([True] if said else [])
    assert faults(probed, "spark-b", SETTINGS, RELEASE, 1) == []


def test_a_pair_that_serves_is_warned_too() -> None:
    running = node(clock=clock(False), services={"twinserve-rank.service": {"ActiveState": "active"}})
    assert len(warnings(running, 0, SETTINGS, RELEASE)) == 1


@pytest.mark.parametrize(
    ("shown", "timesync", "chrony", "found"),
    [
        ("NTP=yes\nNTPSynchronized=yes\n", "", "", clock(True)),
        ("NTP=no\nNTPSynchronized=no\n", "", "", clock(False, False)),
        ("NTP=yes\nNTPSynchronized=no\n", TIMESYNC, "", clock(False, True, "172.17.4.2", "192.0.2.123")),
        ("NTP=yes\nNTPSynchronized=no\n", "", CHRONY, clock(False, True, "172.17.4.9", "192.0.2.123")),
        ("", "", "506 Cannot talk to daemon\n", clock(None, None)),
    ],
)
def test_what_sets_the_clock_is_read(shown: str, timesync: str, chrony: str, found: dict[str, Any]) -> None:
    assert clock_sync.parse(shown, timesync, chrony) == found


def test_servers_are_asked_for_only_when_the_clock_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = Programs(tmp_path, monkeypatch, "timedatectl", "chronyc")
    programs.answer("timedatectl_show", "NTP=yes\nNTPSynchronized=yes\n")
    assert clock_sync.read() == clock(True)
    assert programs.calls == ["timedatectl show --property=NTP --property=NTPSynchronized"]
    programs.answer("timedatectl_show", "NTP=yes\nNTPSynchronized=no\n")
    programs.answer("timedatectl_show-timesync", "Failed to query server: Unit not found", 1)
    programs.answer("chronyc", CHRONY)
    assert clock_sync.read()["servers"] == ["172.17.4.9", "192.0.2.123"]
    programs.answer("timedatectl", "System has not been booted with systemd as init system (PID 1).", 1)
    programs.answer("timedatectl_show", "System has not been booted with systemd as init system (PID 1).", 1)
    with pytest.raises(CommandError, match="not been booted"):
        clock_sync.read()
