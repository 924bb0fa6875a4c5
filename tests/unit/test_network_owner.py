"""Ports, their addresses and who configured them, from what `ip`, `nmcli` and `networkctl` print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import netdevs, netplan_file, network_owner
from fake_programs import Programs
from probes import link, maker

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
    {"ifname": "down0", "flags": ["BROADCAST"], "mtu": 1500, "master": "br0"},
    {
        "ifname": "rail.7",
        "link": "enp1s0f1np1",
        "flags": [],
        "mtu": 1500,
        "addr_info": [
            {"family": "inet", "local": "10.1.1.1", "prefixlen": 24, "dynamic": True},
            {"family": "inet6", "local": "fd00::1", "prefixlen": 64, "scope": "global"},
            {"family": "inet6", "local": "fe80::2", "prefixlen": 64, "scope": "link"},
        ],
    },
]


def test_links_with_addresses_mtu_and_carrier() -> None:
    links = netdevs.parse_links(json.dumps(LINKS))
    assert list(links) == ["lo", "enp1s0f0np0", "enp1s0f1np1", "down0", "rail.7"]
    assert links["enp1s0f0np0"] == {
        "addresses": ["198.51.100.1/24"],
        "unrouted": [],
        "leased": [],
        "ipv6": [],
        "master": None,
        "carries": [],
        "mtu": 9000,
        "mac": "4c:bb:47:00:01:10",
        "up": True,
        "carrier": True,
    }
    seen = {name: (link["up"], link["carrier"]) for name, link in links.items()}
    assert seen["enp1s0f1np1"] == (True, False)
    assert seen["down0"] == (False, False)
    assert (links["down0"]["master"], links["enp1s0f1np1"]["carries"]) == ("br0", ["rail.7"])
    assert (links["rail.7"]["leased"], links["rail.7"]["ipv6"]) == (["10.1.1.1/24"], ["fd00::1/64"])


RECORDED = Path(__file__).parent / "recorded/network"
RAILS_FILE = "network:\n  ethernets:\n    {}:\n      mtu: 9000\n"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All files that are looked at below one folder."""
    monkeypatch.setattr(network_owner, "IFUPDOWN", tmp_path / "network")
    for place in ("run", "etc", "lib"):
        (tmp_path / place).mkdir()
    monkeypatch.setattr(netplan_file, "FOLDERS", [tmp_path / place for place in ("lib", "etc", "run")])
    return tmp_path


def read(folders: Path, monkeypatch: pytest.MonkeyPatch, recording: str) -> tuple[dict[str, Any], Programs]:
    """The network as read from programs that print what was recorded; a service without recording is off."""
    programs = Programs(folders, monkeypatch, "ip", "nmcli", "networkctl", "systemctl")
    running = []
    for call, file, service in (
        ("ip_-j_addr", "ip.json", ""),
        ("networkctl", "networkctl.json", "systemd-networkd"),
        ("nmcli_-t_-f_DEVICE,STATE_device", "nmcli-device", "NetworkManager"),
        ("nmcli_-t_-f_NAME,DEVICE,FILENAME_connection_show_--active", "nmcli-active", ""),
    ):
        path = RECORDED / recording / file
        if path.is_file():
            programs.answer(call, path.read_text())
            running.append(f"Id={service}.service\nActiveState=active\n")
    programs.answer("systemctl_show", "\n".join(running))
    return network_owner.read_network(), programs


def test_f12_networkd_says_which_file_and_which_address_was_set_by_hand(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("enp1s0f0np0", "enP2p1s0f0np0"):
        (folders / f"etc/40-{name}.yaml").write_text(RAILS_FILE.format(name))
    found, programs = read(folders, monkeypatch, "networkd")
    assert found["makers"]["enP2p1s0f0np0"] == maker(
        "networkd",
        "10-netplan-enP2p1s0f0np0.network",
        str(folders / "etc/40-enP2p1s0f0np0.yaml"),
        by_hand=("10.5.5.5/24",),
    )
    assert found["makers"]["enp1s0f0np0"]["by_hand"] == ()
    assert found["makers"]["enp1s0f1np1"] == maker("networkd", lasting=False)
    assert not [call for call in programs.calls if "nmcli" in call]


def test_f14_networkmanager_says_which_profile_and_which_address_was_set_by_hand(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folders / "etc/40-rails.yaml").write_text(RAILS_FILE.format("enP2p1s0f0np0"))
    makers = read(folders, monkeypatch, "networkmanager")[0]["makers"]
    keyfile = "/etc/NetworkManager/system-connections/rail1.nmconnection"
    assert makers["enp1s0f0np0"] == maker("NetworkManager", "rail1", keyfile, by_hand=("10.6.6.6/24",))
    # Generated by netplan into /run, from a file that stays.
    assert makers["enP2p1s0f0np0"] == maker(
        "NetworkManager", "netplan-enP2p1s0f0np0", str(folders / "etc/40-rails.yaml")
    )
    # Addressed by `ip`: NetworkManager has only taken note of it.
    assert makers["enp1s0f1np1"] == maker("NetworkManager", lasting=False, by_hand=("10.7.7.7/24",))
    assert makers["enP2p1s0f1np1"] == maker("NetworkManager", lasting=False)
    assert makers["enP7s7"]["service"] == "networkd"


@pytest.mark.parametrize(
    ("state", "service"),
    [
        ("connected", "NetworkManager"),
        ("connecting (getting IP configuration)", "NetworkManager"),
        ("disconnected", "NetworkManager"),
        ("unavailable", "NetworkManager"),
        ("connected (externally)", "NetworkManager"),
        ("unmanaged", "networkd"),
    ],
)
def test_f14_a_port_belongs_to_networkmanager_unless_it_leaves_it_alone(state: str, service: str) -> None:
    nm = network_owner.parse_nmcli(f"enp1s0f1np1:{state}\n", "")
    assert network_owner.maker("enp1s0f1np1", link(), nm, {}, {}).service == service


@pytest.mark.parametrize(
    ("state", "service"), [("connected (externally)", "networkd"), ("connected", "NetworkManager")]
)
def test_f14_where_both_run_the_one_that_configured_the_port_has_it(state: str, service: str) -> None:
    nm = network_owner.parse_nmcli(f"a0:{state}\n", "rail:a0:/etc/rail.nmconnection\n")
    networkd = {"a0": network_owner.NetworkdPort("/etc/systemd/network/a0.network")}
    assert network_owner.maker("a0", link("10.0.0.1/24"), nm, networkd, {}).service == service


@pytest.mark.parametrize(
    ("file", "lasting"),
    [
        ("/etc/NetworkManager/system-connections/rail1.nmconnection", True),
        ("/run/NetworkManager/system-connections/rail1.nmconnection", False),
        ("/run/NetworkManager/system-connections/netplan-a0.nmconnection", True),
        ("/run/NetworkManager/system-connections/netplan-gone.nmconnection", False),
    ],
)
def test_f14_a_profile_that_is_only_in_run_is_gone_after_a_reboot(file: str, lasting: bool) -> None:
    nm = network_owner.parse_nmcli("a0:connected\n", f"rail1:a0:{file}\n")
    netplan = {"/etc/netplan/40-cx7.yaml": RAILS_FILE.format("a0"), "/run/netplan/x.yaml": "gone0: {}"}
    assert network_owner.maker("a0", link("10.0.0.1/24"), nm, None, netplan).lasting is lasting


def test_colons_in_names_are_escaped_by_nmcli() -> None:
    nm = network_owner.parse_nmcli("odd\\:name:connected\n\n", "my\\:rail:odd\\:name:/etc/my\\:rail\n")
    assert nm == {"odd:name": network_owner.NmPort("connected", "my:rail", "/etc/my:rail")}


def test_where_neither_service_runs_addresses_are_by_hand_or_of_ifupdown(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folders / "network/interfaces.d").mkdir(parents=True)
    rail = folders / "network/interfaces.d/rail"
    rail.write_text("auto enp1s0f0np0\niface enp1s0f0np0 inet static\n")
    programs = Programs(folders, monkeypatch, "ip", "systemctl")
    programs.answer("ip_-j_addr", (RECORDED / "networkd/ip.json").read_text())
    makers = network_owner.read_network()["makers"]
    assert makers["enp1s0f0np0"] == maker(None, None, str(rail))
    assert makers["enP2p1s0f0np0"] == maker(None, lasting=False, by_hand=("198.18.238.11/24", "10.5.5.5/24"))


def test_only_our_netplan_file_is_read_out(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Programs(folders, monkeypatch, "ip", "systemctl").answer("ip_-j_addr", "[]")
    (folders / "etc/01-wifi.yaml").write_text("password: secret\n")
    (folders / "etc/60-twinserve-fabric.yaml").write_text("network: {}\n")
    (folders / "etc/notes.txt").write_text("no netplan file\n")
    (folders / "lib/01-wifi.yaml").write_text("shadowed\n")
    (folders / "run/70-x.yaml").write_text("")
    found = network_owner.read_network()["netplan"]
    assert list(found.items()) == [
        (str(folders / "etc/01-wifi.yaml"), ""),
        (str(folders / "etc/60-twinserve-fabric.yaml"), "network: {}\n"),
        (str(folders / "run/70-x.yaml"), ""),
    ]


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("[Match]\nName=a0\n[Network]\nLinkLocalAddressing=ipv4\n", True),
        ("[Network]\nLinkLocalAddressing=ipv4\nDHCP=ipv4\n", False),
        ("[Network]\nLinkLocalAddressing=ipv4\nAddress=10.0.0.1/24\n", False),
        ("[Network]\nLinkLocalAddressing=ipv6\n", False),
        ("[Network]\nDHCP=yes\n", False),
        ("[connection]\nid=x\n[ipv4]\nmethod=link-local\n", True),
        ("[connection]\nid=x\n[ipv4]\nmethod=auto\n", False),
    ],
)
def test_f12_a_file_by_which_a_port_only_gives_itself_an_address(
    tmp_path: Path, text: str, only: bool
) -> None:
    file = tmp_path / "a"
    file.write_text(text)
    networkd = {"a0": network_owner.NetworkdPort(str(file))}
    assert network_owner.maker("a0", link(), {}, networkd, {}).link_local is only
    keyfile = network_owner.parse_nmcli("a0:connected\n", f"x:a0:{file}\n")
    assert network_owner.maker("a0", link(), keyfile, None, {}).link_local is only
