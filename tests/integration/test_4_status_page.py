"""The status page, in a browser: who may see it, what it tells, and that it is gone with who wrote it."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import httpx2 as httpx
import pytest
from browser import open_page
from faults import wait_for
from lab_pair import ROOT, Lab, Play
from test_4_gateway import ETC, Client


@pytest.fixture(scope="module")
def client(lab: Lab, converged: Play) -> Client:
    return Client(lab)


def with_key(client: Client, path: str = "/", name: str = "default", key: str = "") -> httpx.Response:
    """What the gateway answers to a browser in which somebody typed a name and a key."""
    with client.http() as one:
        return one.get(path, auth=(name, key or client.key))


def test_a_browser_shows_the_pair_as_its_supervisor_sees_it(lab: Lab, client: Client) -> None:
    where = f"https://default:{client.key}@{client.address}:8888/"
    text = open_page(where, client.address)
    told = dict(re.findall(r"<dt>(.+?)</dt><dd>(.+?)</dd>", text))
    state = json.loads(lab.root(lab.hosts[0], "cat", "/run/twinserve/state.json"))

    assert '<span class="word">serving</span>' in text
    assert told["Window"] == f"{state['effective']['window']:,} tokens"
    assert told["Pool"].startswith(f"{state['effective']['pool_tokens']:,} tokens, ")
    assert re.fullmatch(r"\d+ of \d+ streams", told["Requests"])
    for number, rail in enumerate(state["rails"]):
        assert rail["head"]["address"] in told[f"Rail {number}"]
    for rank, name in enumerate(lab.hosts):
        assert told[f"Rank {rank}"].startswith(f"{name}: running, ")
    assert (told["Release"], told["Twinserve"]) == ("lab", state["runtime"])
    assert "/tensorfold@sha256:" in told["Image"]
    assert "GLM-5.3-Flash" in told["Weights"]


def test_it_can_be_looked_at(client: Client) -> None:
    picture = ROOT / "build/status-page.png"
    picture.parent.mkdir(exist_ok=True)
    picture.unlink(missing_ok=True)
    open_page(f"https://default:{client.key}@{client.address}:8888/", client.address, picture)
    assert _size(picture) == (900, 1000)


def _size(picture: Path) -> tuple[int, int]:
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def test_who_has_no_key_is_asked_for_one(client: Client) -> None:
    bare = httpx.get(client.base, verify=client.trust)
    assert bare.status_code == 401
    assert bare.headers["WWW-Authenticate"].startswith('Basic realm="')
    assert "text/html" in bare.headers["Content-Type"]
    assert with_key(client, key=client.key[:-1]).status_code == 401
    assert with_key(client, name="somebody").status_code == 401
    assert with_key(client).status_code == 200
    with client.http(client.key) as one:
        assert one.get("/").status_code == 200, "programs send the key alone"


def test_the_head_itself_is_asked_for_none(lab: Lab, client: Client) -> None:
    told = lab.root(lab.hosts[0], "curl", "-sS", "--cacert", f"{ETC}/ca.pem", "https://localhost:8888/")
    assert '<span class="word">serving</span>' in told


def test_what_a_browser_adds_by_itself_does_not_open_the_api(client: Client) -> None:
    for path in ("/v1/models", "/health", "/metrics"):
        assert with_key(client, path).status_code == 401


def test_browsers_are_told_to_load_nothing_and_keep_nothing(client: Client) -> None:
    headers = with_key(client).headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"


def test_it_is_gone_with_its_supervisor_and_comes_back_with_it(lab: Lab, client: Client) -> None:
    head = lab.hosts[0]
    before = lab.containers()
    lab.root(head, "systemctl", "kill", "--signal=KILL", "--kill-whom=main", "twinserve")
    wait_for(lambda: with_key(client).status_code == 503, lab)
    wait_for(lambda: '<span class="word">serving</span>' in with_key(client).text, lab)
    assert lab.containers() == before
