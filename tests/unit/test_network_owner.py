"""Ports, their addresses and who owns them, from what `ip` and `nmcli` print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import netdevs, network_owner
from fake_programs import Programs

LINKS = [
    {},
    {"ifname": "lo", "flags": ["LOOPBACK", "UP", "LOWER_UP"], "mtu": 65536, "addr_info": []},
    {
        "ifname": "enp1s0f0np0",
        "flags": ["BROADCAST", "UP", "LOWER_UP"],
        "mtu": 9000,
        "address": "4c:bb:47:00:01:10",
        "addr_info": [
            {"family": "inet", "local": "198.51.100.1", "prefixlen": 24},
            {"family": "inet6", "local": "fe80::1", "prefixlen": 64},
            {"family": "inet", "local": "198.51.100.9", "prefixlen": 24, "tentative": True},
        ],
    },
    {"ifname": "enp1s0f1np1", "flags": ["NO-CARRIER", "BROADCAST", "UP"], "mtu": 1500},
    {"ifname": "down0", "flags": ["BROADCAST"], "mtu": 1500},
]


def test_links_with_addresses_mtu_and_carrier() -> None:
    links = netdevs.parse_links(json.dumps(LINKS))
    assert list(links) == ["lo", "enp1s0f0np0", "enp1s0f1np1", "down0"]
    assert links["enp1s0f0np0"] == {
        "addresses": ["198.51.100.1/24"],
        "mtu": 9000,
        "mac": "4c:bb:47:00:01:10",
        "up": True,
        "carrier": True,
    }
    seen = {name: (link["up"], link["carrier"]) for name, link in links.items()}
    assert seen["enp1s0f1np1"] == (True, False)
    assert seen["down0"] == (False, False)


@pytest.mark.parametrize(
    ("line", "managed"),
    [
        ("enp1s0f1np1:connected", {"enp1s0f1np1"}),
        ("enp1s0f1np1:connecting (getting IP configuration)", {"enp1s0f1np1"}),
        ("enp1s0f1np1:disconnected", {"enp1s0f1np1"}),
        ("enp1s0f1np1:unmanaged", set()),
        ("enp1s0f1np1:unavailable", set()),
        ("enp1s0f1np1:connected (externally)", set()),
        (r"odd\:name:connected", {"odd:name"}),
        ("", set()),
    ],
)
def test_f14_ports_that_networkmanager_manages(line: str, managed: set[str]) -> None:
    assert network_owner.parse_nmcli(line + "\n") == managed


@pytest.mark.parametrize(
    ("running", "networkd", "owners"),
    [
        (True, True, {"enp1s0f0np0": "NetworkManager", "down0": "networkd"}),
        (True, False, {"enp1s0f0np0": "NetworkManager", "down0": None}),
        (False, True, {"enp1s0f0np0": "networkd", "down0": "networkd"}),
    ],
)
def test_f14_each_port_has_its_owner(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    running: bool,
    networkd: bool,
    owners: dict[str, str | None],
) -> None:
    programs = Programs(tmp_path, monkeypatch, "ip", "nmcli")
    programs.answer("ip_-j_addr", json.dumps(LINKS))
    programs.answer("nmcli", "enp1s0f0np0:connected\ndown0:unmanaged\n")
    for name, there in (("NM", running), ("NETWORKD", networkd)):
        folder = tmp_path / name
        monkeypatch.setattr(network_owner, name, folder)
        if there:
            folder.mkdir()
    monkeypatch.setattr(network_owner, "NETPLAN", tmp_path / "netplan")
    found = network_owner.read_network()
    assert {name: found["owners"][name] for name in owners} == owners
    assert found["netplan"] == {}


def test_only_our_netplan_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Programs(tmp_path, monkeypatch, "ip", "nmcli").answer("ip_-j_addr", "[]")
    monkeypatch.setattr(network_owner, "NETPLAN", tmp_path)
    (tmp_path / "01-wifi.yaml").write_text("password: secret\n")
    (tmp_path / "60-twinserve-fabric.yaml").write_text("network: {}\n")
    (tmp_path / "notes.txt").write_text("no netplan file\n")
    assert network_owner.read_network()["netplan"] == {
        str(tmp_path / "01-wifi.yaml"): "",
        str(tmp_path / "60-twinserve-fabric.yaml"): "network: {}\n",
    }
