"""Where the head reaches a worker that is given by a name; what it takes the name for decides."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.filter.hosts import FilterModule
from ansible_collections.twinserve.pair.plugins.module_utils import host_names
from probes import NAMES, head, link, worker

FILTERS = FilterModule().filters()
LAN = "192.0.2.12"


def pair(
    given: str | None, resolved: dict[str, list[str]] | None = None, **links: Any
) -> list[dict[str, Any]]:
    """Both hosts as the inventory and the probes describe them; `links` are the worker's."""
    facts = [head() | {"resolved": resolved or {}}, worker(**{"enP7s7": link(f"{LAN}/24"), **links})]
    hosts: list[dict[str, Any]] = [
        {"inventory_hostname": name, "ansible_facts": {"twinserve_node": node, "twinserve_settings": {}}}
        for name, node in zip(NAMES, facts, strict=True)
    ]
    if given:
        hosts[1]["ansible_host"] = given
    return hosts


def way(*args: Any, **links: Any) -> dict[str, str]:
    found: dict[str, str] = FILTERS["control_ways"](pair(*args, **links))[1]
    return found


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ({"inventory_hostname": "spark-a", "ansible_host": "192.0.2.11"}, "192.0.2.11"),
        ({"inventory_hostname": "spark-a"}, "spark-a"),
        ({"inventory_hostname": "spark-a", "ansible_host": ""}, "spark-a"),
    ],
)
def test_where_ssh_reaches_a_host(host: dict[str, str], address: str) -> None:
    assert FILTERS["management_address"](host) == address


@pytest.mark.parametrize("given", [LAN, "2001:db8::12", "198.18.7.7"])
def test_f05_an_address_is_taken_as_it_is_given(given: str) -> None:
    assert way(given) == {"address": given, "note": "", "fault": ""}


@pytest.mark.parametrize("given", [None, "spark-b", "spark-b.local"])
def test_a_name_that_the_head_knows_is_kept(given: str | None) -> None:
    assert way(given, {given or "spark-b": ["198.18.0.9", LAN]}) == {
        "address": given or "spark-b",
        "note": "",
        "fault": "",
    }


def test_a_name_that_only_the_controller_knows_gives_way_to_the_shared_network() -> None:
    assert way("b.lan", {"b.lan": []}) == {
        "address": LAN,
        "note": "spark-a does not know the name b.lan: it reaches spark-b at 192.0.2.12",
        "fault": "",
    }


def test_a_name_that_the_head_takes_for_another_machine_is_not_believed() -> None:
    found = way("b.lan", {"b.lan": ["192.0.2.99"]})
    assert found["address"] == LAN
    assert found["note"].startswith(
        "spark-a takes the name b.lan for 192.0.2.99, which spark-b does not have:"
    )


@pytest.mark.parametrize(
    "links",
    [
        {"enP7s7": link("203.0.113.77/24")},  # another network
        {"enP7s7": link(f"{LAN}/24", carrier=False)},
        {"enP7s7": link(), "enp1s0f0np0": link(f"{LAN}/24")},  # on a rail
        {"enP7s7": link(), "docker0": link("192.0.2.11/24")},  # the same address on both
    ],
)
def test_without_a_shared_network_it_is_refused_with_what_to_do(links: dict[str, Any]) -> None:
    assert way("b.lan", **links)["fault"] == (
        "spark-a does not know the name b.lan, and shares no network with spark-b beside the rails: set "
        "ansible_host of spark-b to an address that spark-a can use too, or name it in its /etc/hosts"
    )


def test_a_node_that_was_not_looked_at_is_taken_as_given() -> None:
    hosts = pair("b.lan")
    del hosts[0]["ansible_facts"]["twinserve_node"]
    assert FILTERS["control_ways"](hosts)[1]["address"] == "b.lan"


@pytest.mark.parametrize(
    ("given", "peers", "asked"),
    [
        (LAN, (None, None), []),
        (LAN, ("198.51.100.2", "198.51.100.1"), []),
        (None, (None, None), ["spark-b"]),
        ("b.lan", ("b-rail", "a-rail"), ["a-rail", "b-rail", "b.lan"]),
    ],
)
def test_only_names_are_asked_for(given: str | None, peers: tuple[str | None, ...], asked: list[str]) -> None:
    hosts = pair(given)
    for host, peer in zip(hosts, peers, strict=True):
        host["ansible_facts"]["twinserve_settings"] = {"fabric_peer": peer}
    assert FILTERS["names_to_resolve"](hosts) == asked


def test_names_are_resolved_to_ipv4_each_address_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(name: str, *_: Any) -> list[Any]:
        if name != "known":
            raise socket.gaierror(-2, "Name or service not known")
        return [(2, 1, 6, "", ("192.0.2.12", 0)), (2, 1, 6, "", ("192.0.2.12", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    assert host_names.resolve(["known", "unknown"]) == {"known": ["192.0.2.12"], "unknown": []}
    assert host_names.resolve([]) == {}
