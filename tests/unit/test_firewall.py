"""The engine's ports are the pair's alone: rules as text, what differs, what is told, other firewalls."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import firewall_plan, other_firewalls
from ansible_collections.twinserve.pair.plugins.module_utils.firewall_rules import (
    FILE,
    UNIT,
    replacing,
    signature,
)
from ansible_collections.twinserve.pair.plugins.module_utils.managed_files import fingerprint
from ansible_collections.twinserve.pair.plugins.module_utils.other_firewalls import parse_firewalld, parse_ufw
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import environment_faults
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import engine_names, load_product
from engine_data import faults, resolved

LINKS = [
    [
        {"netdev": "enp1s0f1np1", "address": "192.168.177.1"},
        {"netdev": "enP2p1s0f1np1", "address": "192.168.178.1"},
    ],
    [
        {"netdev": "enp1s0f0np0", "address": "192.168.177.2"},
        {"netdev": "enP2p1s0f0np0", "address": "192.168.178.2"},
    ],
]
BARE = {"nft": True, "table": "", "written": [], "enabled": False, "range": [32768, 60999]}
SETTINGS: dict[str, Any] = {
    "firewall": True,
    "firewall_allow_ports": None,
    "expose": "loopback",
    "api_host": "127.0.0.1",
    "api_port": 8888,
    "engine_port": 18888,
    "master_port": 29551,
    "effective": {"master_port": 29551},
}
BY_ARGS = {"master_port": 9000}
SSHD = {"process": "sshd", "address": "0.0.0.0", "port": 22, "pid": 1}
# What nft 1.1 makes of the head's file.
LISTED = """table inet twinserve {
	chain input {
		type filter hook input priority filter - 5; policy accept;
%s	}
}
"""


def node(firewall: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "firewall": {**BARE, **(firewall or {})},
        "files": {},
        "listeners": [SSHD],
        "services": {},
        **more,
    }


def plans(*nodes: dict[str, Any], ssh: int = 22, **settings: Any) -> list[dict[str, Any]]:
    both = list(nodes) or [node(), node()]
    return firewall_plan.plan(both, [{**SETTINGS, **settings}] * 2, LINKS, [ssh] * 2, "[Unit]\n")


def rules(text: str) -> list[str]:
    """The rules without what tells of them."""
    return [line.split(" comment ")[0].strip() for line in text.splitlines() if " comment " in line]


def serving(given: dict[str, Any]) -> dict[str, Any]:
    unit = {"ActiveState": "active"}
    return {**given, "services": {"twinserve-rank.service": unit}}


def test_x04_the_head_lets_the_workers_in_on_the_rails_and_closes_what_the_engine_opens() -> None:
    head, worker = plans()
    assert rules(head["rules"]) == [
        'iifname "lo" accept',
        'iifname { "enP2p1s0f1np1", "enp1s0f1np1" } ip saddr { 192.168.177.2, 192.168.178.2 } accept',
        "tcp dport { 22 } accept",
        "tcp dport { 8888, 29551, 32768-60999 } tcp flags & (fin | syn | rst | ack) == syn counter drop",
        "udp dport 4791 counter drop",
    ]
    # A worker listens at no port that a setting names: what its owner has there is not ours to close.
    assert "tcp dport { 32768-60999 } tcp flags" in worker["rules"]
    assert "ip saddr { 192.168.177.1, 192.168.178.1 }" in worker["rules"]


@pytest.mark.parametrize(
    ("settings", "is_open", "closed"),
    [
        ({"expose": "direct"}, "{ 22, 8888 }", "{ 29551, 32768-60999 }"),
        ({"firewall_allow_ports": [40022, 5000]}, "{ 22, 5000, 40022 }", "{ 8888, 29551, 32768-60999 }"),
        ({"ssh": 2222}, "{ 22, 2222 }", "{ 8888, 29551, 32768-60999 }"),
        ({"effective": BY_ARGS}, "{ 22 }", "{ 8888, 9000, 32768-60999 }"),
        ({"expose": "gateway"}, "{ 22, 8888 }", "{ 18888, 29551, 32768-60999 }"),
    ],
    ids=["direct", "allowed", "ssh elsewhere", "by extra_args", "gateway"],
)  # fmt: skip
def test_what_stays_open_and_what_closes_follow_the_settings(
    settings: dict[str, Any], is_open: str, closed: str
) -> None:
    found = rules(plans(**settings)[0]["rules"])
    assert f"tcp dport {is_open} accept" in found
    assert any(rule.startswith(f"tcp dport {closed} ") for rule in found)


def test_x04_the_master_is_the_heads_rail_and_another_one_is_refused() -> None:
    refused = faults(extra_args=["--master", "192.0.2.11"])
    assert refused == ["extra_args: --master is managed; use fabric_netdev"]
    for engine, flag in (("vllm", "--master-addr"), ("sglang", "--dist-init-addr")):
        data = load_product(engine)
        release = data.release(data.releases()[-1])
        assert "fabric_netdev" in release["managed_flags"][flag]


@pytest.mark.parametrize("engine", engine_names())
def test_x04_no_address_or_interface_of_the_ranks_is_taken_from_engine_env(engine: str) -> None:
    product = load_product(engine)
    instead = "fabric_netdev|master_port|nccl_ib_hca|nothing, .+"
    for name in product.releases():
        release = product.release(name)
        for variable in (*release["link_env"], "MASTER_ADDR", "MASTER_PORT", "NCCL_COMM_ID"):
            (said,) = environment_faults({variable: "192.0.2.11"}, release)
            assert re.fullmatch(rf"engine_env: {variable} is managed; use ({instead})", said)
        # What tunes NCCL is the user's.
        assert environment_faults({"NCCL_ALGO": "Ring", "NCCL_IB_TC": "106"}, release) == []


def test_x04_without_the_firewall_it_is_warned_of_once() -> None:
    told = resolved(firewall=False).warnings
    assert [text for text in told if "firewall is false: master_port 29551" in text] == told


def test_the_ranges_that_the_kernel_takes_random_ports_from_is_the_nodes_own() -> None:
    assert "20000-30000 }" in plans(node({"range": [20000, 30000]}), node())[0]["rules"]


def loaded(text: str, enabled: bool = True) -> dict[str, Any]:
    """A node on which these rules are loaded, and will be at each boot."""
    body = "".join(line + "\n" for line in text.splitlines() if " comment " in line)
    listing = LISTED % body.replace("counter drop", "counter packets 7 bytes 420 drop")
    files = {FILE: fingerprint(text, "0644"), UNIT: fingerprint("[Unit]\n", "0644")}
    return node({"table": listing, "written": signature(text), "enabled": enabled}, files=files)


def test_rules_that_are_loaded_and_kept_need_nothing() -> None:
    head, worker = (loaded(one["rules"]) for one in plans())
    assert [one["differs"] for one in plans(head, worker)] == [False, False]
    assert [one["differs"] for one in plans(head, worker, expose="direct")] == [True, False]


def test_a_table_that_somebody_changed_or_flushed_and_one_that_no_boot_loads_are_mended() -> None:
    head, worker = (loaded(one["rules"]) for one in plans())
    whole = head["firewall"]["table"]
    for table in ("", whole.replace("\t\tudp", "\t\ttcp dport 80 drop\n\t\tudp"), whole.replace("RoCE", "-")):
        broken = {**head, "firewall": {**head["firewall"], "table": table}}
        assert plans(broken, worker)[0]["differs"], table
    assert plans(loaded(plans()[0]["rules"], enabled=False), worker)[0]["differs"]
    assert plans({**head, "files": {}}, worker)[0]["differs"]


def test_firewall_false_takes_ours_away_and_needs_nothing_where_none_is() -> None:
    head = loaded(plans()[0]["rules"])
    found = plans(head, node(), firewall=False)
    assert [(one["rules"], one["differs"]) for one in found] == [("", True), ("", False)]


def test_the_package_waits_for_a_rank_that_runs_and_rules_do_not() -> None:
    bare, running = node({"nft": False}), serving(node({"nft": False}))
    assert plans(bare, node())[0]["package"]
    waits = plans(running, node())[0]
    assert (waits["package"], waits["differs"]) == (False, False)
    assert "run playbooks/stop.yml, then site.yml" in waits["waits"]
    assert plans(serving(node()), node())[0]["differs"]


def test_services_of_others_that_would_be_cut_off_are_named_before() -> None:
    mine = [
        {"process": "tailscaled", "address": "100.64.0.7", "port": 41000, "pid": 2},
        {"process": "containerd", "address": "127.0.0.1", "port": 38563, "pid": 3},
        {"process": "docker-proxy", "address": "0.0.0.0", "port": 40000, "pid": 4},
        {"process": "nginx", "address": "0.0.0.0", "port": 443, "pid": 5},
    ]
    given = node(listeners=[SSHD, *mine])
    assert plans(node(), given)[1]["notes"] == [
        "warn worker: tailscaled listens on 100.64.0.7:41000, which the firewall closes to all but the pair: "
        "firewall_allow_ports: [41000] keeps it open"
    ]
    assert plans(node(), given, firewall_allow_ports=[41000])[1]["notes"] == []


def test_no_link_is_no_pair_yet() -> None:
    found = firewall_plan.plan([node(), node()], [SETTINGS] * 2, [[], []], [22, 22], "")
    assert [one["differs"] for one in found] == [False, False]


def test_what_was_there_is_brought_back_over_whatever_is_there() -> None:
    assert replacing(LISTED % "").startswith(
        "table inet twinserve\ndelete table inet twinserve\ntable inet twinserve {\n\tchain input {"
    )


def test_the_doctor_says_when_the_table_is_not_loaded() -> None:
    head = {**loaded(plans()[0]["rules"]), "rank_plan": {"rank": 0}}
    assert firewall_plan.problem(head, SETTINGS) == ""
    assert firewall_plan.problem({**head, "firewall": {**head["firewall"], "table": ""}}, SETTINGS) == (
        "the firewall is not loaded: the engine's ports are open to every network; "
        "systemctl restart twinserve-firewall"
    )
    changed = {**head["firewall"], "table": LISTED % ""}
    assert "were changed by hand" in firewall_plan.problem({**head, "firewall": changed}, SETTINGS)
    assert "run site.yml" in firewall_plan.problem({**head, "files": {}}, SETTINGS)
    assert firewall_plan.problem({**head, "files": {}}, {**SETTINGS, "firewall": False}) == ""


UFW = """*filter
### RULES ###

### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in
-A ufw-user-input -p tcp --dport 22 -j ACCEPT

### tuple ### allow any any 0.0.0.0/0 any 192.168.177.2 in_enp1s0f1np1 comment=7477696e7365727665
-A ufw-user-input -i enp1s0f1np1 -s 192.168.177.2 -j ACCEPT
"""
FIREWALLD = """drop
  target: DROP
  ingress-priority: 0
  interfaces: 
  rich rules: 

public (default, active)
  target: default
  interfaces: enP7s7 enp1s0f1np1
  rich rules: 
\trule family="ipv4" source address="192.168.177.2" accept

trusted
  target: ACCEPT
  interfaces: 
  rich rules: 
"""  # noqa: W291


def test_ufw_gets_a_rule_for_each_rail_and_peer_that_it_lacks() -> None:
    seen = {"ufw": parse_ufw(UFW), "firewalld": None, "added": []}
    found = other_firewalls.steps(seen, ["enp1s0f1np1"], ["192.168.177.2", "192.168.178.2"])
    assert other_firewalls.words(found["add"]) == (
        "ufw allow in on enp1s0f1np1 from 192.168.178.2 comment twinserve\n"
    )


def test_firewalld_gets_a_rule_in_the_zone_that_the_rail_has_or_gets() -> None:
    seen: dict[str, Any] = {"ufw": None, "firewalld": parse_firewalld(FIREWALLD, "drop"), "added": []}
    found = other_firewalls.steps(seen, ["enp1s0f1np1", "enP2p1s0f1np1"], ["192.168.177.2"])
    assert found["add"] == [{"in": "firewalld", "zone": "drop", "peer": "192.168.177.2"}]


def test_of_other_firewalls_only_what_was_added_goes_again() -> None:
    ours = {"in": "ufw", "netdev": "old0", "peer": "192.168.177.2"}
    seen: dict[str, Any] = {
        "ufw": [*parse_ufw(UFW), ["old0", "192.168.177.2"]],
        "firewalld": None,
        "added": [ours],
    }
    assert other_firewalls.steps(seen, [], []) == {"add": [], "drop": [ours]}
    asleep = {**seen, "ufw": None}
    assert other_firewalls.steps(asleep, ["enp1s0f1np1"], ["192.168.177.2"]) == {"add": [], "drop": []}
