"""Monitoring: switched on while the pair serves, what it sees, and five faults that reach their receiver."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import alert_rules
import pytest
from conftest import NAME
from faults import settled, state, wait_for
from lab_pair import ROOT, Lab, Play
from link_setups import own_lab, shell
from test_z_clean import OURS

pytestmark = pytest.mark.slow
PROMETHEUS, ALERTMANAGER, EXPORTER = 9490, 9491, 9492
TOKEN = "hook-token-that-is-secret"
SETTINGS = {
    "monitoring": True,
    "monitoring_interval": 2,
    "alert_after": 4,
    "canary_interval": 2,
    "alert_webhook": f"http://127.0.0.1:9999/{TOKEN}",
    "alert_mail_to": "owner@example.com",
    "alert_mail_smarthost": "127.0.0.1:2525",
    "alert_mail_tls": False,
}
RECEIVER = """
import http.server, socketserver, threading

class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open("/root/alerts", "ab") as file:
            file.write(body + b"\\n")
        self.send_response(200)
        self.end_headers()

class Mail(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"220 here\\r\\n")
        text = False
        for line in self.rfile:
            with open("/root/mails", "ab") as file:
                file.write(line)
            word = line.strip().upper()
            if text and word != b".":
                continue
            text = word == b"DATA"
            code = b"354" if text else b"221" if word == b"QUIT" else b"250"
            self.wfile.write(code + b" so be it\\r\\n")

socketserver.ThreadingTCPServer.allow_reuse_address = True
mail = socketserver.ThreadingTCPServer(("127.0.0.1", 2525), Mail)
threading.Thread(target=mail.serve_forever).start()
http.server.ThreadingHTTPServer(("127.0.0.1", 9999), Hook).serve_forever()
"""
THEIRS = ("prometheus", "prometheus-alertmanager", "prometheus-node-exporter")
# Ours, and those of the distribution's units: Prometheus, Alertmanager and its cluster, node exporter.
PORTS = {PROMETHEUS, ALERTMANAGER, EXPORTER, 9090, 9093, 9094, 9100}
ENGINE = "glm53-flash-tf"
SEARCH = Path(__file__).with_name("secret_search.py")
CONF, CA = "/etc/twinserve/gateway/nginx.conf", "/etc/twinserve/gateway/ca.pem"
# What somebody types on the node of that rank, and what mends it. The gateway still runs, by its unit.
FAULTS = {
    "TwinserveGatewayDown": (
        0,
        "systemctl kill --signal=STOP twinserve-gateway",
        "systemctl kill --signal=CONT twinserve-gateway",
    ),
    "TwinserveFirewallOff": (
        1,
        "nft delete table inet twinserve",
        "systemctl restart twinserve-firewall",
    ),
}


@dataclass(frozen=True)
class Watched:
    """A pair whose monitoring was switched on while it served, and what that run left as it was."""

    lab: Lab
    play: Play
    settings: str
    before: tuple[dict[str, str], list[int]]
    after: tuple[dict[str, str], list[int]]


@pytest.fixture(scope="module")
def serving(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A pair of its own that serves without monitoring; with --keep-lab the one that is up and serves."""
    if request.config.getoption("--keep-lab"):
        yield request.getfixturevalue("lab")
        return
    with own_lab(NAME, mark="m") as own:
        own.play("site.yml").succeeded()
        yield own


@pytest.fixture(scope="module")
def watched(serving: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """The run that switches monitoring on; somebody waits for alerts."""
    path = tmp_path_factory.mktemp("settings") / "monitoring.yml"
    path.write_text(json.dumps(SETTINGS))
    with receiver(serving):
        before = serving.containers(), reloads(serving)
        play = serving.play("site.yml", "-e", f"@{path}", "--diff", "-v").succeeded()
        yield Watched(serving, play, f"@{path}", before, (serving.containers(), reloads(serving)))


@contextmanager
def receiver(lab: Lab) -> Iterator[None]:
    """Somebody on the head who takes what is posted and mailed, into files."""
    # Empty until somebody posts or mails.
    shell(
        lab, lab.hosts[0], f": >/root/alerts; : >/root/mails; cat >/root/receiver.py <<'END'{RECEIVER}END\n"
    )
    shell(lab, lab.hosts[0], "systemd-run --quiet --unit=receiver python3 /root/receiver.py")
    try:
        yield
    finally:
        shell(lab, lab.hosts[0], "systemctl stop receiver; rm -f /root/receiver.py")


def ask(lab: Lab, query: str) -> list[dict[str, Any]]:
    """What Prometheus answers now; nothing while it starts."""
    url = f"http://127.0.0.1:{PROMETHEUS}/api/v1/query"
    words = ["curl", "-sS", "--data-urlencode", f"query={query}", url]
    text = lab.verb("exec", lab.hosts[0], *words, check=False)
    if not text.startswith("{"):
        return []
    answer: dict[str, Any] = json.loads(text)
    assert answer["status"] == "success", answer
    return list(answer["data"]["result"])


def by_host(lab: Lab, query: str) -> dict[str, float]:
    """One number for each host that has one."""
    return {one["metric"]["instance"]: float(one["value"][1]) for one in ask(lab, query)}


def told(lab: Lab, alert: str, status: str = "firing") -> bool:
    """Whether the receiver got this of an alert."""
    text = lab.root(lab.hosts[0], "cat", "/root/alerts")
    got = [one for line in text.splitlines() if line for one in json.loads(line)["alerts"]]
    return any((one["labels"]["alertname"], one["status"]) == (alert, status) for one in got)


def reloads(lab: Lab) -> list[int]:
    """How often systemd was told to read its units again, on each host."""
    consoles = [
        (lab.folder / "hosts" / host / "console.log").read_text(errors="replace") for host in lab.hosts
    ]
    return [text.count("Reload requested") for text in consoles]


def test_all_targets_are_up_and_nothing_was_restarted_or_reloaded(watched: Watched) -> None:
    lab = watched.lab
    wait_for(lambda: len(ask(lab, "up == 1")) == 5, lab)

    head, worker = lab.hosts
    assert {(one["metric"]["job"], one["metric"]["instance"]) for one in ask(lab, "up")} == {
        ("engine", head), ("node", head), ("node", worker), ("prometheus", head), ("alertmanager", head),
    }  # fmt: skip
    assert all(watched.before[0].values())
    assert watched.after == watched.before, "containers, and reloads of systemd, which takes their GPUs"
    for host in lab.hosts:
        asked = shell(lab, host, "systemctl show twinserve-rank --property NeedDaemonReload --value")
        assert asked.strip() == "no", "nobody is told to do it by hand"


def test_nothing_listens_where_others_could_reach_it(watched: Watched) -> None:
    lab = watched.lab
    rail = ask(lab, 'up{job="node"}')
    heard = {host: set(shell(lab, host, "ss -Hltn | awk '{print $4}'").split()) for host in lab.hosts}
    head, worker = (sorted(one for one in heard[host] if _port(one) in PORTS) for host in lab.hosts)

    assert len(rail) == 2
    assert head == [f"127.0.0.1:{port}" for port in (PROMETHEUS, ALERTMANAGER, EXPORTER)]
    assert len(worker) == 1
    assert worker[0].startswith("192.168.177."), "the main rail"
    for host in lab.hosts:
        states = lab.verb("exec", host, "systemctl", "is-enabled", *THEIRS, check=False).split()
        assert "enabled" not in states


def _port(listening: str) -> int:
    return int(listening.rpartition(":")[2])


def test_a_healthy_pair_is_quiet_and_a_second_run_changes_nothing(watched: Watched) -> None:
    lab = watched.lab
    assert lab.play("site.yml", "-e", watched.settings).succeeded().changed == 0
    assert lab.play("playbooks/monitoring.yml", "-e", watched.settings, "--check").succeeded().changed == 0
    assert [one["metric"] for one in ask(lab, 'ALERTS{alertstate="firing"}')] == []


def test_the_token_is_in_one_file_that_only_prometheus_reads(watched: Watched) -> None:
    lab, head = watched.lab, watched.lab.hosts[0]
    assert TOKEN not in watched.play.output
    # In files, journal, containers, and what programs were started with; in reverse, not to find itself.
    found = lab.root(head, "python3", "-c", SEARCH.read_text(), "at_rest", TOKEN[::-1]).splitlines()
    kept = "/etc/twinserve/monitoring/alertmanager.yml"
    assert found == [f"{TOKEN}\t{kept}"]
    assert shell(lab, head, f"stat -c '%U %a' {kept}").split() == ["prometheus", "600"]


def test_the_gateway_is_counted_on_the_head_and_the_firewall_watched_on_both(watched: Watched) -> None:
    lab, (head, worker) = watched.lab, watched.lab.hosts
    wait_for(lambda: by_host(lab, "twinserve_firewall_loaded") == {head: 1, worker: 1}, lab)
    assert by_host(lab, "twinserve_gateway_up") == {head: 1}
    states = {one["metric"]["state"] for one in ask(lab, "twinserve_gateway_connections")}
    assert states == {"active", "reading", "writing", "waiting"}
    assert by_host(lab, "twinserve_gateway_dropped_total") == {head: 0}

    before = by_host(lab, "twinserve_gateway_requests_total")
    # More than our own looks, of which there is one every 15 seconds.
    lab.root(head, "curl", "-sS", "--cacert", CA, "https://localhost:8888/health?[1-40]")
    wait_for(lambda: by_host(lab, "twinserve_gateway_requests_total")[head] >= before[head] + 40, lab)


def test_what_reads_a_nodes_own_figures_may_do_little_else(watched: Watched) -> None:
    unit = "/etc/systemd/system/twinserve-node-metrics.service"
    said = shell(
        watched.lab, watched.lab.hosts[0], f"systemd-analyze security --offline=true --no-pager {unit}"
    )
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
    assert found and float(found[1]) <= 2.0, said[-200:]


def test_every_query_of_the_dashboard_has_an_answer(watched: Watched) -> None:
    lab, head = watched.lab, watched.lab.hosts[0]
    for number in range(3):
        lab.chat(f"Count to {number}.")
    dashboard = json.loads((ROOT / "roles/monitoring/files/dashboard.json").read_text())
    queries = [one["expr"] for panel in dashboard["panels"] for one in panel.get("targets", [])]

    asked = [query.replace("$head", head) for query in queries]
    wait_for(lambda: [query for query in asked if not ask(lab, query)] == [], lab)
    (first,) = ask(lab, "twinserve:first_token_seconds:p90")
    assert float(first["value"][1]) > 0


def test_the_rules_pass_their_tests_with_the_promtool_of_the_node(watched: Watched, tmp_path: Path) -> None:
    lab, head = watched.lab, watched.lab.hosts[0]
    alert_rules.write(tmp_path)
    for name in ("rules.yml", "alerts.yml"):
        shell(lab, head, f"cat > /root/{name} <<'END'\n{(tmp_path / name).read_text()}END\n")
    assert "SUCCESS" in shell(lab, head, "cd /root && promtool test rules alerts.yml")


@pytest.mark.parametrize("alert", FAULTS)
def test_a_gateway_that_hangs_and_a_firewall_that_somebody_flushed_are_told(
    watched: Watched, alert: str
) -> None:
    lab = watched.lab
    rank, fault, cure = FAULTS[alert]
    shell(lab, lab.hosts[rank], fault)
    try:
        wait_for(lambda: told(lab, alert), lab)
    finally:
        shell(lab, lab.hosts[rank], cure)
    wait_for(lambda: told(lab, alert, "resolved"), lab)


def test_a_gateway_from_before_is_brought_to_count_by_a_reload(watched: Watched) -> None:
    lab, head = watched.lab, watched.lab.hosts[0]
    shell(lab, head, f"sed -i '/# What is counted/,$d' {CONF}; echo '}}' >>{CONF}")
    lab.root(head, "systemctl", "reload", "twinserve-gateway")
    wait_for(lambda: by_host(lab, "twinserve_gateway_up") == {head: 0}, lab)
    before = lab.containers(), shell(lab, head, "systemctl show --property MainPID twinserve-gateway")

    lab.play("serve.yml", "-e", watched.settings).succeeded()

    wait_for(lambda: by_host(lab, "twinserve_gateway_up") == {head: 1}, lab)
    after = lab.containers(), shell(lab, head, "systemctl show --property MainPID twinserve-gateway")
    assert after == before


def test_a_frozen_rank_is_told_by_its_canary(watched: Watched) -> None:
    lab = watched.lab
    lab.root(lab.hosts[1], "docker", "kill", "--signal=STOP", ENGINE)
    try:
        wait_for(lambda: told(lab, "TwinserveCanaryOld"), lab)
    finally:
        lab.root(lab.hosts[1], "docker", "kill", "--signal=CONT", ENGINE)
    wait_for(lambda: told(lab, "TwinserveCanaryOld", "resolved"), lab)


def test_a_pulled_rail_is_told_when_the_pair_serves_on_without_it(watched: Watched) -> None:
    lab = watched.lab
    settled(lab, restart_limit=3, canary_interval=60)
    lab.verb("cut-rail", "1")
    try:
        wait_for(lambda: told(lab, "TwinserveRailMissing"), lab, 300)
    finally:
        lab.verb("mend-rail", "1")
    wait_for(lambda: "carries packets again" in " ".join(state(lab)["warnings"]), lab)
    lab.root(lab.hosts[0], "systemctl", "restart", "twinserve")
    wait_for(lambda: told(lab, "TwinserveRailMissing", "resolved"), lab, 300)


def test_a_pair_that_gives_up_is_told_by_post_and_mail(watched: Watched) -> None:
    lab = watched.lab
    settled(lab, restart_limit=0)
    lab.root(lab.hosts[1], "docker", "kill", ENGINE)
    wait_for(lambda: told(lab, "TwinservePairDown"), lab)
    wait_for(lambda: "TwinservePairDown" in shell(lab, lab.hosts[0], "cat /root/mails"), lab)


def test_it_goes_when_it_is_switched_off_and_with_all_else_of_ours(watched: Watched) -> None:
    lab = watched.lab
    lab.play("playbooks/monitoring.yml").succeeded()
    for host in lab.hosts:
        units = shell(lab, host, "systemctl list-units --plain --no-legend 'twinserve-*'")
        assert [name for name in ("prometheus", "alertmanager", "node-") if name in units] == []
        assert (
            shell(
                lab, host, "ls -d /etc/twinserve/monitoring /run/twinserve/metrics 2>&1 | grep -c 'No such'"
            )
            == "2\n"
        )
    lab.play("playbooks/monitoring.yml", "-e", watched.settings).succeeded()
    lab.play("playbooks/stop.yml").succeeded()

    keep = [f"-eclean_{kind}=false" for kind in ("weights", "images", "caches")]
    lab.play("playbooks/clean.yml", *keep).succeeded()

    for host in lab.hosts:
        assert lab.root(host, "sh", "-c", OURS) == ""
        assert not PORTS & {_port(one) for one in shell(lab, host, "ss -Hltn | awk '{print $4}'").split()}
