"""May the head download? Asked first, each refusal with its own text."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.twinserve.pair.plugins.module_utils import hf_cache
from ansible_collections.twinserve.pair.plugins.modules import hub_access
from hub_cache import FILES, REPO, REVISION, fill
from module_run import run_module


class Hub(ThreadingHTTPServer):
    """Answers every HEAD with one status, and lists the files of every repository in two pages."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.code = 200, ""
        self.list_status = 200
        self.moved_to = ""
        self.next_host = "127.0.0.1"
        self.asked: list[tuple[str, str | None]] = []


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))
        self.send_response(302 if self.server.moved_to else self.server.status)
        if self.server.moved_to:
            self.send_header("Location", f"{self.server.moved_to}{self.path}")
        if self.server.code:
            self.send_header("X-Error-Code", self.server.code)
        self.end_headers()

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))
        self.send_response(self.server.list_status)
        first = [
            {"type": "directory", "path": "x", "oid": "d", "size": 0},
            {"type": "file", "path": "x/a", "oid": "a1", "size": 3},
        ]
        large = {"oid": "sha", "size": 7000}
        second = [{"type": "file", "path": "b", "oid": "b1", "size": 135, "lfs": large}]
        if "cursor" not in self.path:
            link = f"http://{self.server.next_host}:{self.server.server_port}{self.path}&cursor=2"
            self.send_header("Link", f'<{link}>; rel="next"')
        self.end_headers()
        self.wfile.write(json.dumps(second if "cursor" in self.path else first).encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name in the base class)
        """Say nothing."""


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()
    threading.Thread(target=hub.serve_forever, args=(0.05,), daemon=True).start()
    yield hub
    hub.shutdown()
    hub.server_close()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hf_cache, "MANIFESTS", tmp_path / "manifests")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "hf"


@pytest.fixture(autouse=True)
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _, text: texts.append(text))
    return texts


def ask(capsys: pytest.CaptureFixture[str], endpoint: str, home: Path, **more: Any) -> dict[str, Any]:
    given = {"snapshots": [{"repo": REPO, "revision": REVISION}], "hf_home": str(home), **more}
    return run_module(hub_access, capsys, endpoint=endpoint, **given)


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
    hub: Hub,
    capsys: pytest.CaptureFixture[str],
    home: Path,
    status: int,
    code: str,
    token: str | None,
    said: str | None,
) -> None:
    hub.status, hub.code = status, code
    answer = ask(capsys, url(hub), home, **({"token": token} if token else {}))
    assert answer["failed"] is (said is not None)
    assert answer.get("msg", "").startswith(said or "")
    bearer = f"Bearer {token}" if token else None
    assert hub.asked[0] == (f"/o/n/resolve/{REVISION}/config.json", bearer)
    assert [asked[1] for asked in hub.asked] == [bearer] * len(hub.asked)


def test_m08_the_users_own_login_counts_as_it_does_for_the_client(
    hub: Hub, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    home.mkdir()
    (home / "token").write_text("hf_own\n")
    ask(capsys, url(hub), home)
    assert {token for _, token in hub.asked} == {"Bearer hf_own"}
    hub.status = 401
    assert ask(capsys, url(hub), home)["msg"] == f"Hugging Face does not accept the token ({home}/token)"
    hub.asked.clear()
    ask(capsys, url(hub), home, token="hf_x")
    assert {token for _, token in hub.asked} == {"Bearer hf_x"}


def test_m08_a_hub_that_does_not_answer_is_a_fault(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    answer = ask(capsys, "http://127.0.0.1:9", home)
    assert answer["fault"].startswith("no answer from http://127.0.0.1:9: ")
    assert (answer["silent"], answer["lists"]) == ([f"{REPO}@{REVISION}"], {})


@pytest.mark.parametrize("tree", [True, False])
def test_m17_what_is_here_will_do_when_the_hub_is_silent(
    capsys: pytest.CaptureFixture[str], home: Path, warned: list[str], tree: bool
) -> None:
    fill(home, tree=tree)
    answer = ask(capsys, "http://127.0.0.1:9", home)
    assert answer["fault"] == ""
    assert warned == ["Hugging Face not reachable: using the snapshot already here (9eaebb7c)"]
    assert answer["silent"] == [f"{REPO}@{REVISION}"]


@pytest.mark.parametrize("always", [False, True])
def test_m17_a_whole_snapshot_needs_no_hub(
    hub: Hub, capsys: pytest.CaptureFixture[str], home: Path, always: bool
) -> None:
    fill(home)
    noted = hf_cache.manifest_path(REPO, REVISION)
    noted.parent.mkdir()
    noted.write_text(json.dumps(hf_cache.manifest_from_disk(str(home), REPO, REVISION)))
    answer = ask(capsys, url(hub), home, always=always)
    assert bool(hub.asked) is always
    # A worker may lack it: what it is made of is known.
    sizes = sorted(len(data) for data in FILES.values())
    assert sorted(answer["lists"][f"{REPO}@{REVISION}"].values()) == sizes
    (home / f"hub/models--o--n/trees/{REVISION}.json").unlink()
    assert ask(capsys, url(hub), home)["lists"] == answer["lists"]


def test_with_a_bundle_the_hub_is_not_asked(
    hub: Hub, capsys: pytest.CaptureFixture[str], home: Path, tmp_path: Path
) -> None:
    snapshot = fill(tmp_path / "disk")
    answer = ask(capsys, url(hub), home, bundle=str(tmp_path / "disk"))
    assert (answer["fault"], answer["silent"], hub.asked) == ("", [], [])
    assert sum(answer["lists"][f"{REPO}@{REVISION}"].values()) == sum(len(data) for data in FILES.values())
    (snapshot / "config.json").resolve().unlink()
    answer = ask(capsys, url(hub), home, bundle=str(tmp_path / "disk"))
    assert answer["fault"] == f"bundle {tmp_path}/disk lacks 1 files of {REPO}@{REVISION} (config.json)"


def test_m04_the_hubs_list_is_read_to_its_last_page(
    hub: Hub, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    assert ask(capsys, url(hub), home)["lists"] == {f"{REPO}@{REVISION}": {"a1": 3, "sha": 7000}}
    assert hub.asked[1][0] == f"/api/models/o/n/tree/{REVISION}?recursive=true&expand=false"


def test_m05_the_hubs_list_is_told_as_it_is_to_be_kept_for_clients_that_keep_none(
    hub: Hub, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    (note,) = ask(capsys, url(hub), home)["notes"]
    assert hf_cache.hub_list(str(home), REPO, REVISION) == {}, "a run that is refused leaves nothing"
    Path(note["path"]).parent.mkdir()
    Path(note["path"]).write_text(note["content"])
    assert hf_cache.manifest_from_disk(str(home), REPO, REVISION) == {
        "files": {"x/a": 3, "b": 7000},
        "digests": {"x/a": "git:a1", "b": "sha256:sha"},
    }
    assert ask(capsys, url(hub), home)["notes"] == []


def test_m04_a_list_that_cannot_be_read_is_told_and_no_fault(
    hub: Hub, capsys: pytest.CaptureFixture[str], home: Path, warned: list[str]
) -> None:
    hub.list_status = 500
    answer = ask(capsys, url(hub), home)
    assert (answer["failed"], answer["lists"], answer["fault"]) == (False, {}, "")
    assert warned == ["could not ask the Hub what is missing: 500 for the list of o/n"]


@pytest.mark.parametrize("other", [True, False])
def test_the_token_goes_to_no_other_host(
    hub: Hub, capsys: pytest.CaptureFixture[str], home: Path, other: bool
) -> None:
    second = Hub()
    threading.Thread(target=second.serve_forever, args=(0.05,), daemon=True).start()
    hub.moved_to = f"http://{'localhost' if other else '127.0.0.1'}:{second.server_port}"
    hub.next_host = "localhost" if other else "127.0.0.1"
    answer = ask(capsys, url(hub), home, token="hf_x")
    second.shutdown()
    second.server_close()
    assert (answer["failed"], answer["fault"]) == (False, "")
    bearer = None if other else "Bearer hf_x"
    assert [token for _, token in second.asked] == [bearer]
    assert [token for _, token in hub.asked] == ["Bearer hf_x", "Bearer hf_x", bearer]


def test_a_proxy_is_asked_in_place_of_the_hub(
    hub: Hub, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    proxies = {"http_proxy": url(hub), "no_proxy": None, "HTTPS_PROXY": ""}
    assert not ask(capsys, "http://hub.invalid", home, proxies=proxies)["fault"]
    assert hub.asked[0] == (f"http://hub.invalid/o/n/resolve/{REVISION}/config.json", None)
    direct = proxies | {"no_proxy": "x,.invalid"}
    assert "no answer" in ask(capsys, "http://hub.invalid", home, proxies=direct)["fault"]
