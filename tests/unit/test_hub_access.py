"""May the head download? Asked first, each refusal with its own text."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.modules import hub_access
from module_run import run_module

REPO, REVISION = "o/n", "a" * 40


class Hub(ThreadingHTTPServer):
    """Answers every HEAD with one status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.code = 200, ""
        self.asked: list[tuple[str, str | None]] = []


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))
        self.send_response(self.server.status)
        if self.server.code:
            self.send_header("X-Error-Code", self.server.code)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name in the base class)
        """Say nothing."""


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()
    threading.Thread(target=hub.serve_forever, args=(0.05,), daemon=True).start()
    yield hub
    hub.shutdown()
    hub.server_close()


def ask(capsys: pytest.CaptureFixture[str], endpoint: str, **more: Any) -> dict[str, Any]:
    snapshots = [{"repo": REPO, "revision": REVISION}]
    return run_module(hub_access, capsys, check=True, snapshots=snapshots, endpoint=endpoint, **more)


def url(hub: Hub) -> str:
    return f"http://127.0.0.1:{hub.server_port}"


@pytest.mark.parametrize(
    ("status", "code", "token", "said"),
    [
        (200, "", None, None),
        (404, "EntryNotFound", None, None),
        (429, "", None, None),
        (401, "GatedRepo", "hf_x", "Hugging Face does not accept the token (hf_token)"),
        (401, "GatedRepo", None, "o/n needs a token: set hf_token"),
        (403, "GatedRepo", "hf_x", "the token's account has not accepted the terms of o/n (or lacks gated"),
        (404, "RevisionNotFound", None, f"no o/n at revision {REVISION}"),
        # What does not exist and what may not be seen look alike to somebody unknown.
        (401, "RepoNotFound", None, f"no o/n at revision {REVISION}"),
    ],
)
def test_m08_each_refusal_has_its_text(
    hub: Hub, capsys: pytest.CaptureFixture[str], status: int, code: str, token: str | None, said: str | None
) -> None:
    hub.status, hub.code = status, code
    answer = ask(capsys, url(hub), **({"token": token} if token else {}))
    assert answer["failed"] is (said is not None)
    assert answer.get("msg", "").startswith(said or "")
    assert hub.asked == [(f"/o/n/resolve/{REVISION}/config.json", f"Bearer {token}" if token else None)]


@pytest.mark.parametrize("partly", [False, True])
def test_m08_a_hub_that_does_not_answer(capsys: pytest.CaptureFixture[str], partly: bool) -> None:
    answer = ask(capsys, "http://127.0.0.1:9", partly_here=partly)
    assert answer["failed"] is not partly
    assert "no answer from http://127.0.0.1:9: " in (answer["silent"] if partly else answer["msg"])


def test_a_proxy_is_asked_in_place_of_the_hub(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    proxies = {"http_proxy": url(hub), "no_proxy": None, "HTTPS_PROXY": ""}
    assert not ask(capsys, "http://hub.invalid", proxies=proxies)["failed"]
    assert hub.asked == [(f"http://hub.invalid/o/n/resolve/{REVISION}/config.json", None)]
    assert (
        "no answer" in ask(capsys, "http://hub.invalid", proxies=proxies | {"no_proxy": "x,.invalid"})["msg"]
    )
