"""The wire between the nodes: who may do what with which key, and whom the head knows."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import managed_files, ssh_wire

NAMES, ADDRESSES = ("spark-a", "spark-b"), ("192.0.2.11", "192.0.2.12")
PLANS = [
    {"ports": [{"address": "198.51.100.1/24"}, {"address": "203.0.113.1/24"}]},
    {"ports": [{"address": "198.51.100.2/24"}, {"address": "203.0.113.2/24"}]},
]
KNOWN = "spark-b,192.0.2.12,198.51.100.2,203.0.113.2 ssh-ed25519 HOSTB\n"
CONTROL = 'restrict,command="/usr/local/sbin/twinserve-control" ssh-ed25519 CONTROL twinserve-control'
COPY = 'restrict,command="rrsync -wo /home/bob/.cache/huggingface" ssh-ed25519 COPY twinserve-copy'


def node(
    host_key: str,
    keys: bool = False,
    files: dict[str, str] | None = None,
    user: bool = True,
    **lines: list[str],
) -> dict[str, Any]:
    made = {"control": "ssh-ed25519 CONTROL", "copy": "ssh-ed25519 COPY"}
    return {
        "host_key": f"ssh-ed25519 {host_key}",
        "public_keys": made if keys else dict.fromkeys(made),
        "authorized": {"control": [], "copy": []} | lines,
        "files": files or {},
        "tools": {"twinserve_user": user},
        "hf": {"home": "/home/bob/.cache/huggingface"},
    }


def plan(head: dict[str, Any], *workers: dict[str, Any]) -> list[dict[str, Any]]:
    return ssh_wire.plan([head, *workers], NAMES, ADDRESSES, PLANS)


def test_f19_the_head_knows_its_workers_by_every_address_that_it_may_use() -> None:
    assert plan(node("HOSTA"), node("HOSTB"))[0]["known_hosts"] == KNOWN


def test_a_name_that_is_its_own_address_is_written_once() -> None:
    entry = ssh_wire.plan([node("HOSTA"), node("HOSTB")], NAMES, NAMES, [{"ports": []}] * 2)[0]
    assert entry["known_hosts"] == "spark-b ssh-ed25519 HOSTB\n"


def test_before_the_head_has_keys_no_worker_gets_a_line() -> None:
    head, worker = plan(node("HOSTA"), node("HOSTB"))
    assert head["keys"] == ["control", "copy"]
    assert (worker["control"]["missing"], worker["copy"]["missing"]) == (False, False)
    assert head["lacks"]


def test_each_key_may_do_one_thing() -> None:
    _, worker = plan(node("HOSTA", keys=True), node("HOSTB"))
    lines = {name: f"{worker[name]['options']} {worker[name]['key']}" for name in ("control", "copy")}
    assert lines == {"control": CONTROL, "copy": COPY}
    assert (worker["control"]["missing"], worker["copy"]["missing"], worker["lacks"]) == (True, True, True)


@pytest.mark.parametrize(
    ("control", "copy", "missing"),
    [
        ([CONTROL], [COPY], []),
        ([], [COPY], ["control"]),
        ([CONTROL], [COPY.replace("-wo /home", "-wo /other")], ["copy"]),
        ([CONTROL.replace("restrict,", "")], [COPY], ["control"]),
        ([CONTROL.replace("CONTROL t", "OLDKEY t")], [COPY], ["control"]),
    ],
)
def test_a_line_counts_only_when_it_says_exactly_that(
    control: list[str], copy: list[str], missing: list[str]
) -> None:
    _, worker = plan(node("HOSTA", keys=True), node("HOSTB", control=control, copy=copy))
    assert [name for name in ("control", "copy") if worker[name]["missing"]] == missing
    assert worker["lacks"] is bool(missing)


def test_the_key_of_an_earlier_head_goes() -> None:
    files = {ssh_wire.KNOWN_HOSTS: managed_files.fingerprint(KNOWN, "0644")}
    old = COPY.replace("COPY t", "OLD t")
    moved = COPY.replace("-wo /home", "-wo /other")
    controls, copies = [CONTROL, CONTROL.replace("CONTROL t", "OLD t")], [old, moved, COPY]
    head, worker = plan(node("HOSTA", keys=True, files=files), node("HOSTB", control=controls, copy=copies))
    assert worker["copy"]["stale"] == ["ssh-ed25519 OLD twinserve-copy"]
    assert worker["control"]["stale"] == ["ssh-ed25519 OLD twinserve-control"]
    assert (worker["copy"]["missing"], worker["lacks"], head["lacks"]) == (False, True, False)
    unknown = plan(node("HOSTA", files=files), node("HOSTB", control=controls, copy=copies))[1]
    assert unknown["copy"]["stale"] == [], "a head without keys knows no better"


def test_a_wire_that_stands_lacks_nothing() -> None:
    files = {ssh_wire.KNOWN_HOSTS: managed_files.fingerprint(KNOWN, "0644")}
    stands = plan(node("HOSTA", keys=True, files=files), node("HOSTB", control=[CONTROL], copy=[COPY]))
    assert [entry["lacks"] for entry in stands] == [False, False]
    other = plan(node("HOSTA", keys=True, files=files), node("NEWKEY", control=[CONTROL], copy=[COPY]))
    assert (other[0]["known_hosts_differ"], other[0]["lacks"]) == (True, True)
    nobody = plan(node("HOSTA", keys=True, files=files, user=False), node("HOSTB"))
    assert nobody[0]["lacks"]
