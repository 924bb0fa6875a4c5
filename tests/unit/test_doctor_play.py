"""doctor.yml looks at everything, whatever the hub says, and writes nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from plays import play


class Refusing(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(401)
        self.send_header("X-Error-Code", "GatedRepo")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name in the base class)
        """Say nothing."""


@pytest.fixture
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_what_the_hub_refuses_is_a_finding_among_the_others(tmp_path: Path, hub: str) -> None:
    found = {
        "ansible.builtin.debug": {
            "msg": "{{ inventory_hostname }} has {{ __preflight_found.faults | to_json }}"
        }
    }
    tasks: list[dict[str, Any]] = [
        {"twinserve.pair.settings": {}},
        {"ansible.builtin.include_role": {"name": "preflight", "tasks_from": "examine"}},
        found,
    ]
    settings = {"ansible_become": "false", "drafter": "mtp", "hf_cache": tmp_path / "hf", "hf_endpoint": hub}
    words = [word for name, value in settings.items() for word in ("-e", f"{name}={value}")]

    ran = play(tmp_path, tasks, {}, "--limit", "pair1", *words)

    assert ran.code == 0, ran.output
    head = " ".join(ran.output.split()).partition("spark-a has [")[2].partition("]")[0]
    assert '"spark-a:' in head, "the faults of the machine that runs this test"
    assert "needs a token: set hf_token" in head
    assert "spark-b has [" in ran.output
