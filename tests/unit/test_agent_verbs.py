"""The agent's verbs against a node made of a folder and a few answering programs."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.agent import cgroup, verbs
from ansible_collections.twinserve.pair.plugins.module_utils.agent.errors import AgentError
from ansible_collections.twinserve.pair.plugins.module_utils.shell import CommandError
from fake_node import LINK, PLAN, RAIL, FakeNode

CONTAINER = {
    "id": "c1",
    "running": True,
    "pid": 4242,
    "started_at": "2026-11-29T10:00:00Z",
    "digest": "sha256:plan",
}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNode:
    return FakeNode(tmp_path, monkeypatch)


def test_report_of_a_stopped_node(node: FakeNode) -> None:
    report = verbs.report(node.folder / "root")
    assert report["boot_id"] == "4d5f"
    assert [device["hca"] for device in report["devices"]] == ["rocep1s0f1"]
    assert report["memory"] == {"total_gib": 120.0, "available_gib": 110.0}
    assert report["plan"] == {
        "digest": "sha256:plan",
        "image": "repo@sha256:1",
        "container": "glm53",
        "expected_link": None,
    }
    assert report["container"] is None
    assert report["version"]


def test_report_of_a_node_without_a_plan_asks_docker_nothing(node: FakeNode) -> None:
    (node.folder / "rank.json").unlink()
    report = verbs.report(node.folder / "root")
    assert (report["plan"], report["container"], node.calls) == (None, None, [])


def test_report_fails_while_docker_is_silent(node: FakeNode) -> None:
    node.answer("docker_container_inspect", "Cannot connect to the Docker daemon", 1)
    with pytest.raises(AgentError, match="docker cannot be asked: .*Cannot connect"):
        verbs.report(node.folder / "root")


def test_start_keeps_the_link_and_returns_the_container(node: FakeNode) -> None:
    inspected = "$NODE/answers/docker_container_inspect"
    node.answer(
        "systemctl_start", "", do=f"rm -f {inspected}.rc; echo '{node.inspected(True)}' > {inspected}"
    )
    assert verbs.start(json.dumps(LINK)) == CONTAINER
    link = node.folder / "run/link.json"
    assert json.loads(link.read_text()) == LINK
    assert stat.S_IMODE(link.stat().st_mode) == 0o644
    assert [path.name for path in link.parent.iterdir()] == ["link.json"]
    assert "systemctl start twinserve-rank.service" in node.calls


def test_start_says_why_the_container_ended_at_once(node: FakeNode) -> None:
    shown = node.shown("failed", "1", 125)
    node.answer("systemctl_start", "", do=f"echo '{shown}' > $NODE/answers/systemctl_show")
    node.answer("journalctl", "docker: Error response from daemon: no such image\n")
    with pytest.raises(AgentError, match=r"ended at once \(code 125\): docker: Error .* no such image"):
        verbs.start(json.dumps(LINK))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            {"gid_index": 5}, "the GID of 198.51.100.1 on rocep1s0f1 moved from 5 to 3", id="f02-moved"
        ),
        pytest.param(
            {"address": "198.51.100.9"}, "enp1s0f1np1 lost 198.51.100.9; run the fabric play", id="f12-lost"
        ),
        pytest.param({"hca": "rocep9"}, "RoCE device of enp1s0f1np1 is gone", id="f23-gone"),
        pytest.param({"netdev": "enP7s7"}, "rocep1s0f1 belongs to enp1s0f1np1, not to enP7s7", id="f05-lan"),
    ],
)
def test_start_refuses_a_rail_that_is_not_what_it_was_told(
    node: FakeNode, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(AgentError, match=message):
        verbs.start(json.dumps({**LINK, "rails": [{**RAIL, **change}]}))
    assert not any(call.startswith("systemctl start") for call in node.calls)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no JSON"),
        ("[]", "needs master and rails"),
        ('{"master": "", "rails": []}', "needs master and rails"),
        ('{"master": "a", "rails": [{"netdev": "x"}]}', "lacks hca, address, gid_index"),
        ('{"master": "a", "rails": []}', "names no rail"),
    ],
)
def test_start_refuses_a_broken_link(node: FakeNode, text: str, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        verbs.start(text)


FOREIGN = 'LISTEN 0 9 127.0.0.1:8888 0.0.0.0:* users:(("llama-server",pid=4711,fd=5))\n'
PORTS = {**PLAN, "ports": [{"setting": "api_port", "host": "127.0.0.1", "port": 8888}]}
TAKEN = "port 8888 is taken by llama-server (pid 4711): stop it, or set another api_port"


def test_start_refuses_a_port_that_another_server_has(node: FakeNode) -> None:
    node.plan(PORTS)
    node.answer("ss", FOREIGN)
    with pytest.raises(AgentError) as refusal:
        verbs.start(json.dumps(LINK))
    assert str(refusal.value) == TAKEN
    assert not any(call.startswith("systemctl start") for call in node.calls)


@pytest.mark.parametrize(("running", "taken"), [(None, [TAKEN]), (True, []), (False, [])])
def test_report_says_which_port_is_taken_unless_by_our_own_rank(
    node: FakeNode, running: bool | None, taken: list[str]
) -> None:
    node.plan(PORTS)
    node.answer("ss", FOREIGN)
    node.container(running)
    assert verbs.report(node.folder / "root")["hindrances"] == taken


COMFY = [{"Id": "c9", "Name": "/comfy", "HostConfig": {"Runtime": "nvidia"}, "Config": {"Labels": None}}]


@pytest.mark.parametrize(
    ("needed", "running", "said"),
    [
        (114, None, []),  # a little less than was there at the deployment
        (None, None, []),
        (115, True, []),
        (
            115,
            None,
            [
                '110 GiB available, about 115 needed; in use by container "comfy" (GPU); stop other work, '
                "or set allow_low_memory: true"
            ],
        ),
    ],
)
def test_l15_report_says_who_has_the_memory_that_a_start_needs(
    node: FakeNode, needed: float | None, running: bool | None, said: list[str]
) -> None:
    node.plan({**PLAN, "needed_gib": needed})
    node.container(running)
    node.answer("docker_ps", "c9\n")
    node.answer("docker_container_inspect_c9", json.dumps(COMFY))
    assert verbs.report(node.folder / "root")["hindrances"] == said


def test_l15_memory_is_told_although_nobody_can_say_who_has_it(node: FakeNode) -> None:
    node.plan({**PLAN, "needed_gib": 115})
    node.answer("nvidia-smi", "Driver/library version mismatch", 18)
    (said,) = verbs.report(node.folder / "root")["hindrances"]
    assert said.startswith("110 GiB available, about 115 needed; in use by somebody unknown (nvidia-smi ")


def test_report_tells_what_the_rank_was_told(node: FakeNode) -> None:
    assert verbs.report(node.folder / "root")["link"] is None
    node.link(LINK)
    assert verbs.report(node.folder / "root")["link"] == LINK


def test_start_of_a_running_rank_is_an_error(node: FakeNode) -> None:
    node.unit("active")
    with pytest.raises(AgentError, match="already running"):
        verbs.start(json.dumps(LINK))


def test_stop_forgets_a_failure_and_removes_an_orphan(node: FakeNode) -> None:
    node.unit("failed", "1", 137)
    node.container(True)
    assert verbs.stop() == {"stopped": True}
    assert "systemctl stop twinserve-rank.service" in node.calls
    assert "systemctl reset-failed twinserve-rank.service" in node.calls
    assert "docker rm -f glm53" in node.calls


def test_stop_of_a_stopped_rank_removes_nothing(node: FakeNode) -> None:
    assert verbs.stop() == {"stopped": True}
    assert not any(call.startswith(("docker rm", "systemctl reset")) for call in node.calls)


@pytest.mark.parametrize("answer", ["No such container: glm53", "Container 1f2e is not running"])
def test_kill_ends_the_container_first_and_minds_no_absence(node: FakeNode, answer: str) -> None:
    node.answer("docker_kill", f"Error response from daemon: {answer}", 1)
    assert verbs.kill() == {"stopped": True}
    assert node.calls[:2] == ["docker kill glm53", "systemctl stop twinserve-rank.service"]
    node.answer("docker_kill", "Cannot connect to the Docker daemon", 1)
    with pytest.raises(AgentError, match="could not be killed"):
        verbs.kill()


def test_state_while_loading(node: FakeNode) -> None:
    # systemd still has the code of the run before.
    node.unit("active", "1", 137)
    node.container(True)
    node.answer("journalctl", "[tensorfold] loading x\n[tensorfold] admission\n\n")
    node.answer("nvidia-smi", "1234, 10240\n1300, 512\n")
    assert verbs.state() == {
        "unit": "active",
        "container": CONTAINER,
        "exit_code": None,
        "gpu_gib": 10.5,
        "memory_gib": None,
        "starved": None,
        "warnings": [],
        "dark": [],
        "log": ["[tensorfold] loading x", "[tensorfold] admission"],
        "log_line": "[tensorfold] admission",
    }
    wanted = "--lines 20 _SYSTEMD_UNIT=twinserve-rank.service _SYSTEMD_INVOCATION_ID=abc"
    assert any(call.startswith("journalctl") and call.endswith(wanted) for call in node.calls)


def test_a_supervisor_of_the_release_before_has_its_line_also_when_none_was_printed(node: FakeNode) -> None:
    node.answer("journalctl", "\n")
    assert verbs.state()["log_line"] is None


@pytest.mark.parametrize(
    ("code", "status", "expected"), [("1", 2, 2), ("1", 137, 137), ("2", 9, 137), ("0", 0, None)]
)
def test_state_of_an_ended_rank_has_its_exit_code(
    node: FakeNode, code: str, status: int, expected: int | None
) -> None:
    node.unit("failed", code, status)
    assert verbs.state()["exit_code"] == expected


def test_state_while_docker_is_silent(node: FakeNode) -> None:
    node.answer("docker_container_inspect", "Cannot connect to the Docker daemon", 1)
    node.unit("failed", "1", 125)
    assert verbs.state()["container"] is None
    node.unit("active")
    with pytest.raises(AgentError, match="docker cannot be asked"):
        verbs.state()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1, [N/A]\n", None), ("", 0.0), ("No running processes found\n", 0.0), ("1, 1024\n", 1.0)],
)
def test_gpu_memory_without_a_figure_is_unknown(node: FakeNode, text: str, expected: float | None) -> None:
    node.answer("nvidia-smi", text)
    assert verbs.state()["gpu_gib"] == expected


def test_state_names_the_ports_of_its_rails_that_are_dark(node: FakeNode) -> None:
    root = node.folder / "root"
    assert verbs.state(root)["dark"] == [], "it was told no rail yet"
    node.link(LINK)
    assert verbs.state(root)["dark"] == []
    (root / "sys/class/net/enp1s0f1np1/carrier").write_text("0\n")
    assert verbs.state(root)["dark"] == ["enp1s0f1np1"]


def test_memory_of_a_container_is_its_control_groups(tmp_path: Path) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/cgroup").write_text("0::/system.slice/docker-c1.scope\n")
    group = tmp_path / "sys/fs/cgroup/system.slice/docker-c1.scope"
    assert cgroup.used_gib(7, tmp_path) is None
    group.mkdir(parents=True)
    (group / "memory.current").write_text(f"{5 * 2**29}\n")
    assert cgroup.used_gib(7, tmp_path) == 2.5
    (tmp_path / "proc/7/cgroup").write_text("4:memory:/docker/c1\n")
    assert cgroup.used_gib(7, tmp_path) is None


def test_logs_fall_back_to_the_whole_journal(node: FakeNode) -> None:
    assert verbs.logs(25) == ""
    calls = [call for call in node.calls if call.startswith("journalctl")]
    assert [("INVOCATION" in call, "--lines 25" in call) for call in calls] == [(True, True), (False, True)]


def test_f22_a_rank_that_has_said_nothing_yet_is_not_judged_by_an_earlier_start(node: FakeNode) -> None:
    node.unit("active")
    node.answer("journalctl", "", do='case "$*" in *INVOCATION*) ;; *) echo "NET/Socket, an hour ago";; esac')
    assert verbs.logs(25) == ""


def test_unit_helpers_take_name_and_limit_from_the_plan(node: FakeNode) -> None:
    node.plan({**PLAN, "stop_timeout": 90})
    verbs.unit_stop()
    verbs.unit_clean()
    assert node.calls == ["docker stop -t 90 glm53", "docker rm -f glm53"]


def test_what_a_plan_does_to_the_node_is_done_before_the_container_and_undone_after(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, free = ["nvidia-smi", "--lock-gpu-clocks", "0,2200"], ["nvidia-smi", "--reset-gpu-clocks"]
    node.plan({**PLAN, "before": [lock], "after": [free]})
    node.link(LINK)
    # The container's program replaces the agent's process; here it is run beside it.
    monkeypatch.setattr(os, "execvp", lambda _file, argv: subprocess.run(argv, check=True))

    verbs.run()
    verbs.unit_clean()

    assert [" ".join(call.split()[:2]) for call in node.calls] == [
        "nvidia-smi --lock-gpu-clocks",
        "docker run",
        "docker rm",
        "nvidia-smi --reset-gpu-clocks",
    ]


def test_a_clock_that_the_driver_refuses_keeps_the_rank_down(node: FakeNode) -> None:
    node.plan({**PLAN, "before": [["nvidia-smi", "--lock-gpu-clocks", "0,9"]]})
    node.link(LINK)
    node.answer("nvidia-smi", "Setting locked GPU clocks is not supported", 3)
    with pytest.raises(CommandError, match="not supported"):
        verbs.run()


def test_unit_clean_is_content_when_nothing_is_there(node: FakeNode) -> None:
    node.answer("docker_rm", "Error response from daemon: No such container: glm53", 1)
    verbs.unit_clean()
    node.answer("docker_rm", "driver failed", 1)
    with pytest.raises(AgentError, match="could not be removed"):
        verbs.unit_clean()


def test_unit_stop_is_content_when_nothing_is_there(node: FakeNode) -> None:
    node.answer("docker_stop", "Error response from daemon: No such container: glm53", 1)
    verbs.unit_stop()
    node.answer("docker_stop", "driver failed", 1)
    with pytest.raises(AgentError, match="could not be stopped"):
        verbs.unit_stop()


@pytest.mark.parametrize(
    ("text", "message"), [('{"schema": 2}', "schema 2, not 1"), ("[]", "no JSON object"), ("{", "no JSON")]
)
def test_a_broken_plan_is_named(node: FakeNode, text: str, message: str) -> None:
    (node.folder / "rank.json").write_text(text)
    with pytest.raises(AgentError, match=message):
        verbs.state()
