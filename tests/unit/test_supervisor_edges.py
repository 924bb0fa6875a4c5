"""The supervisor's edges: configuration, agents by program and ssh, the API by HTTP, systemd's socket."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor import act, main
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.act import Doer
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.client import Client, ClientError
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.config import (
    ConfigError,
    Member,
    read_config,
)
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.events import Probe
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.nodes import (
    LocalNode,
    NodeError,
    SshNode,
    make_nodes,
)
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.notify import notify, one_line
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.observe import counters
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.smoke import Reply
from fake_world import PAIR, World, config

SMOKE = {"prompt": "Reply with OK.", "max_tokens": 32, "extra": {"temperature": 0}}


def program(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


# Configuration


def test_configuration_is_typed(tmp_path: Path) -> None:
    path = tmp_path / "pair.json"
    path.write_text(json.dumps({**PAIR, "rails": 2, "ranks": list(reversed(PAIR["ranks"]))}))
    read = read_config(path)
    assert [member.rank for member in read.members] == [0, 1]
    assert (read.rails, read.start_order, read.hang_limit) == (2, (1, 0), 900.0)
    assert read.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert read.refit and read.refit.search("largest fitting prompt-plus-reply window: 5 tokens")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is missing: run the serve playbook"),
        ("{", "run the serve playbook"),
        ("[]", "run the serve playbook"),
        (json.dumps({**PAIR, "schema": 2}), "schema 2, not 1"),
        (json.dumps({name: PAIR[name] for name in PAIR if name != "api"}), "lacks 'api'"),
        (json.dumps({**PAIR, "hang_limit": "long"}), "could not convert"),
        (json.dumps({**PAIR, "patterns": {**PAIR["patterns"], "retry": ["("]}}), "pattern that is none"),
    ],
)
def test_configuration_that_cannot_be_used_says_why(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "pair.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_config(path)


# Agents


def test_local_agent_gets_words_and_stdin(tmp_path: Path) -> None:
    node = LocalNode([str(program(tmp_path, "agent", 'echo "$* $(cat)"'))])
    assert node.call(["logs", "25"], "in", 5) == "logs 25 in\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("""echo '{"error": "lost its address"}'; exit 1""", "^lost its address$"),
        ("echo oops >&2; exit 3", r"^state failed: oops \(exit 3\)$"),
        ("exec sleep 5", "did not answer within 0 s"),
    ],
)
def test_local_agent_errors_are_words(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(NodeError, match=message):
        LocalNode([str(program(tmp_path, "agent", text))]).call(["state"], "", 0.3 if "sleep" in text else 20)


def test_missing_agent_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="cannot be asked"):
        LocalNode([str(tmp_path / "none")]).call(["state"], "", 5)


def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> SshNode:
    program(tmp_path, "ssh", text)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return SshNode(Member(1, "spark-b", "192.0.2.12", "twinserve"), sockets=tmp_path)


def test_ssh_checks_host_keys_and_sends_one_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = worker(tmp_path, monkeypatch, 'echo "$@"')
    argv = node.argv(["logs", "25"])
    assert argv[-2:] == ["twinserve@192.0.2.12", "logs 25"]
    for option in (
        "StrictHostKeyChecking=yes",
        "UserKnownHostsFile=/etc/twinserve/known_hosts",
        "BatchMode=yes",
        "GlobalKnownHostsFile=/dev/null",
        "IdentityFile=/etc/twinserve/keys/control",
        "IdentityFile=/etc/twinserve/keys/control.next",
        "IdentitiesOnly=yes",
        "ControlMaster=auto",
    ):
        assert option in argv
    assert argv[:3] == ["ssh", "-F", "none"], "no file of a user or the machine takes part"
    assert node.call(["state"], "", 5).endswith("twinserve@192.0.2.12 state\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "echo 'ssh: connect to host: No route to host' >&2; exit 255",
            r"^unreachable by ssh \(exit 255\): .*No route",
        ),
        (
            "echo 'twinserve@192.0.2.12: Permission denied (publickey).' >&2; exit 255",
            r"^is not reached: head cannot ssh to the worker at 192\.0\.2\.12 as twinserve: "
            r"authorise its key and host key "
            r"\(Permission denied\); run ansible-playbook playbooks/fabric\.yml$",
        ),
        ("exit 126", "refuses 'state' for the control key"),
        ("""echo '{"error": "docker cannot be asked"}'; exit 1""", "^docker cannot be asked$"),
    ],
)
def test_o04_ssh_failures_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    with pytest.raises(NodeError, match=message):
        worker(tmp_path, monkeypatch, text).call(["state"], "", 20)


def test_dead_ssh_connection_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f'case "$*" in *"-O exit"*) echo dropped > {tmp_path}/dropped;; *) exec sleep 5;; esac'
    with pytest.raises(NodeError, match="did not answer"):
        worker(tmp_path, monkeypatch, text).call(["state"], "", 0.3)
    assert (tmp_path / "dropped").exists()


def test_only_the_head_is_asked_without_ssh() -> None:
    kinds = [type(node).__name__ for node in make_nodes(config().members)]
    assert kinds == ["LocalNode", "SshNode"]


@pytest.mark.parametrize("answer", ["", "[]", "{}", '{"unit": "active"}'])
def test_agent_that_answers_nonsense_is_a_missed_look(tmp_path: Path, answer: str) -> None:
    node = LocalNode([str(program(tmp_path, "agent", f"echo '{answer}'"))])
    done = Doer(config(), [node], Client("127.0.0.1", 1)).do(Probe(0, 0))
    assert done.value is None
    assert done.error and "cannot be read" in done.error


# API


class Api(BaseHTTPRequestHandler):
    """Answers from a table, and keeps what it was sent."""

    table: ClassVar[dict[str, tuple[int, Any]]] = {}
    bodies: ClassVar[list[Any]] = []

    def do_GET(self) -> None:
        self._send()

    def do_POST(self) -> None:
        self.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._send()

    def _send(self) -> None:
        status, data = self.table[self.path]
        body = (data if isinstance(data, str) else json.dumps(data)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Be quiet."""


@pytest.fixture
def client() -> Iterator[Client]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Api.bodies.clear()
    yield Client("127.0.0.1", server.server_address[1])
    server.shutdown()
    server.server_close()


def test_look_gives_the_model_and_the_counters(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    # A proxy of the environment is for others.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    Api.table = {"/v1/models": (200, {"data": [{"id": "GLM"}]}), "/health": (200, {"context_length": 8})}
    assert client.look("GLM") == {"model": "GLM", "health": {"context_length": 8}}
    Api.table["/health"] = (404, {"error": "not found"})
    assert client.look("GLM") == {"model": "GLM", "health": {}}


METRICS = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="nvidia/GLM-5.3-NVFP4"} 3.0
vllm:num_requests_waiting{engine="0",model_name="nvidia/GLM-5.3-NVFP4"} 2.0
vllm:generation_tokens_total{engine="0",model_name="a } b"} 1.5e+06
vllm:request_success_total{engine="0",finished_reason="stop"} 7.0
vllm:request_success_total{engine="0",finished_reason="length"} 4.0
vllm:request_success_total{engine="0",finished_reason="abort"} none
process_start_time_seconds 1.7e+09
"""


def test_counters_that_health_lacks_come_from_the_metrics(client: Client) -> None:
    """An engine with an empty /health: a busy pair must not look like one that stands still."""
    names = {
        "requests_running": ("vllm:num_requests_running", "vllm:num_requests_waiting"),
        "requests_total": ("vllm:request_success_total",),
        "prompt_tokens_total": ("vllm:prompt_tokens_total",),
        "completion_tokens_total": ("vllm:generation_tokens_total",),
    }
    asking = Client("127.0.0.1", client._port, names)
    Api.table = {
        "/v1/models": (200, {"data": [{"id": "GLM", "max_model_len": 98304}]}),
        "/health": (200, ""),
        "/metrics": (200, METRICS),
    }
    found = asking.look("GLM")["health"]
    assert found == {
        "context_length": 98304,
        "requests_running": 5,
        "requests_total": 11,
        "completion_tokens_total": 1500000,
    }
    assert counters(found) == (("completion_tokens_total", 1500000.0),)
    Api.table["/metrics"] = (500, "no")
    assert asking.look("GLM")["health"] == {"context_length": 98304}
    Api.table["/metrics"] = (200, METRICS)
    Api.table["/health"] = (503, "")
    assert asking.look("GLM")["health"] == found


def test_the_engines_own_window_wins_and_nobody_asks_for_metrics_in_vain(client: Client) -> None:
    Api.table = {
        "/v1/models": (200, {"data": [{"id": "GLM", "max_model_len": 4}]}),
        "/health": (200, {"context_length": 8}),
    }
    assert client.look("GLM") == {"model": "GLM", "health": {"context_length": 8}}


@pytest.mark.parametrize(
    "answer", [(200, {"data": []}), (401, {"error": "no"}), (200, []), (500, {"data": [{"id": "GLM"}]})]
)
def test_look_without_a_model_is_not_ready(client: Client, answer: tuple[int, Any]) -> None:
    Api.table = {"/v1/models": answer}
    with pytest.raises(ClientError, match="/v1/models"):
        client.look("GLM")


def test_another_server_on_our_port_is_none_of_ours(client: Client) -> None:
    Api.table = {"/v1/models": (200, {"data": [{"id": "llama"}, {"id": "qwen"}]})}
    with pytest.raises(ClientError, match=r"another server answers on port \d+: it has llama, qwen, not GLM"):
        client.look("GLM")


def test_l05_asks_with_the_engines_own_switches(client: Client) -> None:
    message = {"content": "OK", "reasoning_content": "x"}
    Api.table = {"/v1/chat/completions": (200, {"choices": [{"message": message}]})}
    assert client.ask("GLM", SMOKE, 5) == Reply(200, "OK", "x")
    assert Api.bodies == [
        {
            "model": "GLM",
            "messages": [{"role": "user", "content": "Reply with OK."}],
            "max_tokens": 32,
            "temperature": 0,
        }
    ]


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ((200, {"choices": [{"message": {"content": None}}]}), Reply(200, "")),
        (
            (200, {"choices": [{"message": {"content": "OK", "reasoning": "Hm."}, "finish_reason": "stop"}]}),
            Reply(200, "OK", "Hm."),
        ),
        (
            (
                200,
                {"choices": [{"message": {"content": None, "reasoning": ",,,"}, "finish_reason": "length"}]},
            ),
            Reply(200, "", ",,,", cut=True),
        ),
        ((500, {"error": {"message": "out of step"}}), Reply(500, "out of step")),
        ((404, {"error": "not found"}), Reply(404, "not found")),
    ],
)
def test_answers_of_the_chat(client: Client, answer: tuple[int, Any], reply: Reply) -> None:
    Api.table = {"/v1/chat/completions": answer}
    assert client.ask("GLM", SMOKE, 5) == reply


def test_silent_or_absent_api_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        with pytest.raises(ClientError, match="no answer within 0 s"):
            Client("127.0.0.1", deaf.getsockname()[1]).ask("GLM", SMOKE, 0.2)
        port = deaf.getsockname()[1]
    with pytest.raises(ClientError, match="refused"):
        Client("127.0.0.1", port).look("GLM")


# The loop


def test_bad_configuration_ends_with_a_code_that_is_not_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "CONFIG", tmp_path / "pair.json")
    assert main.main() == 78
    assert "pair.json is missing" in capsys.readouterr().err


def test_fault_of_our_own_ends_the_supervisor() -> None:
    world = World()
    # No answer that the outside can give: a bug.
    world.doer._nodes = []
    world.loop.submit = lambda action: act.in_thread(world.doer, action, world.inbox.put)
    with pytest.raises(IndexError):
        for _ in range(50):
            world.loop.turn(0.1)


def test_reload_ends_the_supervisor_and_leaves_the_ranks_alone() -> None:
    world = World()
    world.until("serving")
    calls = [list(calls) for calls in world.calls]
    world.inbox.put(main.Reload())
    with pytest.raises(main.Reload):
        world.run(1)
    assert world.calls == calls
    assert world.shown[-1]["state"] == "serving"


def test_answers_of_threads_drive_the_loop() -> None:
    world = World()
    world.loop.submit = lambda action: act.in_thread(world.doer, action, world.inbox.put)
    world.api.load_time = 0
    for _ in range(100):
        world.now += 1
        world.loop.turn(0.05)
        if world.shown[-1]["state"] == "serving":
            break
    assert world.states() == ["starting", "loading", "smoke", "serving"]


# systemd


def test_notify_reaches_systemds_socket(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        assert notify("READY=1", {"NOTIFY_SOCKET": str(tmp_path / "notify")})
        assert systemd.recv(100) == b"READY=1"
    assert notify("READY=1", {}) is False


def test_status_is_one_short_line() -> None:
    assert one_line("a\nb  c") == "a b c"
    assert len(one_line("x" * 1000)) == 403
