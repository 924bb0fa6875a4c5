"""verify.yml judges what is deployed, not what the settings have become since."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from plays import PAIRS, Ran, play
from test_api_promises import promise

SUITE = {"name": "Verify", "ansible.builtin.include_role": {"name": "serve", "tasks_from": "suite"}}


class Api(BaseHTTPRequestHandler):
    """An API that serves a model named `mine`, and knows nothing else."""

    def do_GET(self) -> None:  # noqa: N802 (the library's name)
        body = json.dumps({"data": [{"id": "mine"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Nothing."""


class Server6(ThreadingHTTPServer):
    address_family = socket.AF_INET6


@pytest.fixture(params=["127.0.0.1", "::1"])
def api(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Where it listens, as a pair's configuration says it."""
    kind = Server6 if ":" in request.param else ThreadingHTTPServer
    with kind((request.param, 0), Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {"host": request.param, "port": server.server_address[1], "bind": request.param}
        server.shutdown()


def config(api: dict[str, Any], name: str) -> dict[str, Any]:
    promised = vars(promise(served_name=name))
    return {"api": api, "promise": promised, "served_name": name}


HEAD, WORKER = PAIRS["pair1"]
PAIR = {"hosts": [HEAD, WORKER], "head": HEAD, "name": "pair1", "rank": "{{ rank }}"}
TOLD = {
    "name": "Say who is in which pair",
    "ansible.builtin.set_fact": {"cacheable": True, "twinserve_pair": PAIR},
}


def verify(folder: Path, deployed: dict[str, Any] | None, settings: dict[str, Any]) -> Ran:
    """Run the check of models on the first pair's head; `settings` is the configuration that they make."""
    facts: dict[str, dict[str, Any]] = {HEAD: {"pair_config": deployed}, WORKER: {"pair_config": None}}
    given = json.dumps({"__serve_config": settings, "only": ["models"]})
    return play(folder, [TOLD, SUITE], facts, "--limit", "pair1", "-e", given)


def test_a_pair_is_judged_by_its_own_configuration(tmp_path: Path, api: dict[str, Any]) -> None:
    """As after serve.yml -e parallel=2, or after a rollback: the settings still say otherwise."""
    ran = verify(tmp_path, config(api, "mine"), config({**api, "port": 9}, "other"))
    assert (ran.code, "1 of 1 checks passed" in ran.output) == (0, True), ran.output


def test_what_the_settings_say_is_asked_where_nothing_is_deployed(
    tmp_path: Path, api: dict[str, Any]
) -> None:
    ran = verify(tmp_path, None, config(api, "other"))
    assert (ran.code, "lists ['mine'] instead of other" in ran.output) == (2, True), ran.output


@pytest.mark.parametrize(
    ("found", "only", "told"),
    [
        (["VLLM::Worker_TP1 is not on the GPU: nothing is"], [], True),
        (["VLLM::Worker_TP1 is not on the GPU: nothing is"], ["-e", "only=models"], False),
        ([], [], False),
        (None, [], False),
    ],
    ids=["lacking", "not asked", "fine", "not read"],
)
def test_a_rank_without_its_part_of_the_model_on_the_gpu_is_refused(
    tmp_path: Path, found: list[str] | None, only: list[str], told: bool
) -> None:
    """Whatever the API says: here the head finds none."""
    deployed = config({"host": "127.0.0.1", "port": 9}, "mine")
    facts: dict[str, dict[str, Any]] = {HEAD: {"pair_config": deployed}, WORKER: {"gpu_process": found}}
    given = json.dumps({"__serve_config": deployed})
    ran = play(tmp_path, [TOLD, SUITE], facts, "--limit", "pair1", "-e", given, *only)
    assert ("VLLM::Worker_TP1 is not on the GPU" in ran.output) is told, ran.output
