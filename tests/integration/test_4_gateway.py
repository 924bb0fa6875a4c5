"""Who reaches the API, and how: through the gateway, as clients elsewhere do."""

from __future__ import annotations

import base64
import json
import ssl
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2 as httpx
import openai
import pytest
from lab_pair import Lab, Play
from link_setups import shell
from under_way import wait_for

ETC = "/etc/twinserve/gateway"
MODEL = "GLM-5.3-Flash-EXL3"
KEYS = {"alice": "alice-" + "a" * 26, "Bob": "Bob-" + "B" * 28}
QUESTION: Any = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]


class Client:
    """Somebody on the management network who was given the authority and a key."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.address = lab.address(lab.hosts[0])
        self.trust = ssl.create_default_context(cadata=lab.root(lab.hosts[0], "cat", f"{ETC}/ca.pem"))
        self.key = lab.root(lab.hosts[0], "cat", f"{ETC}/api-key").strip()

    @property
    def base(self) -> str:
        """The gateway as the run of site.yml names it."""
        return f"https://{self.address}:8888"

    def http(self, key: str | None = None, **more: Any) -> httpx.Client:
        """A bare client, with a key if one is given."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.base, verify=self.trust, headers=headers, timeout=300, **more)

    def openai(self, key: str | None = None) -> openai.OpenAI:
        """The client of the `openai` package, as anybody sets it up, with this authority."""
        http = httpx.Client(verify=self.trust, timeout=300)
        return openai.OpenAI(
            base_url=f"{self.base}/v1", api_key=key or self.key, http_client=http, max_retries=0
        )


@pytest.fixture(scope="module")
def client(lab: Lab, converged: Play) -> Client:
    return Client(lab)


@pytest.fixture
def _as_it_was(lab: Lab, converged: Play) -> Iterator[None]:
    """Leave the engine without switches, and the gateway with its own key and certificate alone."""
    yield
    lab.verb("engine", lab.hosts[0], "--clear")
    lab.play("serve.yml").succeeded()
    units = shell(lab, lab.hosts[0], "ls /etc/systemd/system")
    assert "twinserve-gateway-certificate" not in units


def picture(size: int) -> str:
    """A PNG of one dot that is `size` bytes long, as a data URL: a text that nobody reads fills it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    dot = chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")
    filled = head + chunk(b"tEXt", b"Comment\0" + b"x" * (size - len(head) - len(dot) - 20)) + dot
    return "data:image/png;base64," + base64.b64encode(filled).decode()


def listening(lab: Lab, host: str) -> list[str]:
    """Addresses and ports on which something listens there."""
    return [line.split()[3] for line in lab.root(host, "ss", "-Hltn").splitlines()]


def test_x01_the_engine_is_on_loopback_and_only_the_gateway_is_reached(lab: Lab, client: Client) -> None:
    found = listening(lab, lab.hosts[0])

    assert [one for one in found if one.endswith(":18888")] == ["127.0.0.1:18888"]
    assert "0.0.0.0:8888" in found
    assert not [one for one in found if one.endswith(":80")], "the page of the distribution's package"
    with pytest.raises((httpx.ConnectError, httpx.ConnectTimeout)):
        httpx.get(f"http://{client.address}:18888/v1/models", timeout=3)


def test_the_openai_client_works_through_it(client: Client) -> None:
    one = client.openai()

    assert [model.id for model in one.models.list()] == [MODEL]
    answer = one.chat.completions.create(model=MODEL, messages=QUESTION)
    assert "Paris" in str(answer.choices[0].message.content)
    pieces = list(one.chat.completions.create(model=MODEL, messages=QUESTION, stream=True))
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    assert "Paris" in text
    with pytest.raises(openai.AuthenticationError, match="this API needs a key"):
        client.openai("x" * 32).models.list()


@pytest.mark.parametrize("spoil", [str.upper, str.lower, lambda key: key + "x", lambda key: key[:-1]])
def test_a_key_counts_to_the_letter(client: Client, spoil: Callable[[str], str]) -> None:
    with client.http(spoil(client.key)) as one:
        assert one.get("/v1/models").status_code == 401
    with client.http() as one:
        assert one.get("/v1/models", headers={"X-Api-Key": client.key}).status_code == 200


@pytest.mark.parametrize(
    "path", ["/", "/invocations", "/scale_elastic_ep", "/v1/../invocations", "/v1/%2e%2e/invocations"]
)
def test_only_named_paths_are_passed_on(client: Client, path: str) -> None:
    with client.http(client.key) as one:
        answer = one.post(path, json={})
    assert answer.status_code == 404
    assert answer.json()["error"]["message"] == "the gateway has no such path"


@pytest.mark.parametrize("path", ["/health", "/metrics"])
def test_health_and_metrics_are_for_key_holders_and_the_head_itself(
    lab: Lab, client: Client, path: str
) -> None:
    with client.http() as stranger, client.http(client.key) as known:
        assert (stranger.get(path).status_code, known.get(path).status_code) == (401, 200)
    here = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", f"{ETC}/ca.pem"]
    assert lab.root(lab.hosts[0], *here, f"https://localhost:8888{path}") == "200"


def test_what_the_gateway_says_itself_is_an_error_as_clients_know_it(client: Client) -> None:
    with client.http() as one:
        answer = one.get("/v1/models?api_key=secret-in-a-query")
    assert answer.json()["error"]["type"] == "authentication_error"
    assert answer.headers["www-authenticate"] == "Bearer"
    assert len(answer.headers["x-request-id"]) == 32
    plain = httpx.get(f"http://{client.address}:8888/v1/models")
    assert (plain.status_code, plain.json()["error"]["message"]) == (400, "the gateway speaks TLS: use https")


def test_60_mb_of_pictures_pass_and_more_than_96_mib_do_not(client: Client) -> None:
    pictures = [{"type": "image_url", "image_url": {"url": picture(8_600_000)}}] * 7
    asked: Any = [{"role": "user", "content": [*pictures, {"type": "text", "text": "Which colour?"}]}]

    answer = client.openai().chat.completions.create(model=MODEL, messages=asked)
    assert answer.choices[0].message.content
    with client.http(client.key) as one:
        refused = one.post("/v1/chat/completions", content=b" " * (97 << 20))
    assert refused.status_code == 413
    assert refused.json()["error"]["message"] == "the body is larger than 96 MiB"


def test_a01_chunked_bodies_reach_a_release_that_cannot_read_them(lab: Lab, client: Client) -> None:
    body = json.dumps({"model": MODEL, "messages": QUESTION})
    bare = [
        "curl",
        "-sS",
        "-H",
        "Transfer-Encoding: chunked",
        "-H",
        "Content-Type: application/json",
        "-d",
        body,
    ]
    alone = lab.root(lab.hosts[0], *bare, "http://127.0.0.1:18888/v1/chat/completions")
    assert "invalid_request_error" in alone

    with client.http(client.key) as one:
        answer = one.post("/v1/chat/completions", content=iter([body[:20].encode(), body[20:].encode()]))
    assert "Paris" in answer.json()["choices"][0]["message"]["content"]


def test_keys_change_while_the_pair_serves_and_streams_go_on(
    lab: Lab, client: Client, tmp_path: Path, _as_it_was: None
) -> None:
    given = tmp_path / "keys.json"
    given.write_text(json.dumps({"api_keys": KEYS, "gateway_rate": 120}))
    before = lab.containers()
    lab.verb("engine", lab.hosts[0], "decode_tokens_per_s=2")
    got: list[str | None] = []

    def listen() -> None:
        stream = client.openai().chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "Count."}], stream=True, max_tokens=150
        )
        got.extend(piece.choices[0].finish_reason for piece in stream if piece.choices)

    reader = Thread(target=listen)
    reader.start()
    while not got:
        time.sleep(0.2)
    run = lab.play("serve.yml", "-e", f"@{given}", "--skip-tags", "verify").succeeded()
    lab.verb("engine", lab.hosts[0], "--clear")

    assert reader.is_alive(), "the stream was to outlast the change"
    reader.join(300)
    assert got[-1] in ("stop", "length")
    assert lab.containers() == before
    assert run.changed > 0
    for key, status in [(client.key, 401), *((key, 200) for key in KEYS.values())]:
        with client.http(key) as one:
            assert one.get("/v1/models", params={"q": "asked"}).status_code == status
    assert not [key for key in KEYS.values() if key in run.output]
    said = lab.root(lab.hosts[0], "journalctl", "-t", "twinserve_gateway", "-o", "cat", "-n", "50")
    assert '"client":"Bob"' in said
    assert not [word for word in (*KEYS.values(), client.key, "asked", "capital of") if word in said]
    with client.http(KEYS["alice"]) as alice, client.http(KEYS["Bob"]) as bob:
        answers = [alice.get("/v1/models") for _ in range(150)]
        assert answers[0].status_code == 200
        assert (answers[-1].status_code, bob.get("/v1/models").status_code) == (429, 200)
    assert answers[-1].json()["error"]["message"] == "this key may make 120 requests a minute"
    again = lab.play("serve.yml", "-e", f"@{given}").succeeded()
    assert again.changed == 0


def test_an_installation_that_was_interrupted_is_finished_and_the_page_of_the_distribution_stays_off(
    lab: Lab, client: Client
) -> None:
    head, before = lab.hosts[0], lab.containers()
    shell(lab, head, f"SYSTEMD_OFFLINE=1 systemctl --quiet enable nginx; echo nginx.service >{ETC}/bringing")

    assert lab.play("serve.yml").succeeded().changed > 0

    assert not lab.node(head).service("nginx").is_enabled
    assert lab.containers() == before
    assert lab.play("serve.yml").succeeded().changed == 0


def test_a_pair_that_is_stopped_is_said_to_be_so(lab: Lab, client: Client, _as_it_was: None) -> None:
    lab.play("playbooks/stop.yml").succeeded()

    with client.http(client.key) as one:
        answer, page = one.get("/v1/models"), one.get("/")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
    assert "the model does not serve now" in answer.json()["error"]["message"]
    assert (page.status_code, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
    assert "is stopped</h1>" in page.text


def test_the_port_goes_to_the_engine_and_back(lab: Lab, client: Client, _as_it_was: None) -> None:
    lab.play("serve.yml", "-e", "expose=direct").succeeded()
    direct = httpx.get(f"http://{client.address}:8888/v1/models").json()
    assert direct["data"][0]["id"] == MODEL
    assert not lab.node(lab.hosts[0]).service("twinserve-gateway").is_running
    assert not lab.node(lab.hosts[0]).file("/run/twinserve/status.html").exists, "nobody shows it"

    back = lab.play("playbooks/rollback.yml").succeeded()

    assert "serves again" in back.output
    with client.http(client.key) as one:
        assert one.get("/v1/models").status_code == 200
    assert lab.node(lab.hosts[0]).service("twinserve-gateway").is_enabled


def test_given_files_are_shown_and_taken_anew_when_they_change(
    lab: Lab, client: Client, _as_it_was: None
) -> None:
    head = lab.hosts[0]
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "/root/k.pem",
        "-out",
        "/root/c.pem",
    ]
    named = ["-subj", "/CN=llm.example", "-addext", "subjectAltName=DNS:llm.example", "-days"]
    lab.root(head, *made, *named, "30")
    words = ["gateway_tls=files", "gateway_names=llm.example"]
    words += ["gateway_certificate=/root/c.pem", "gateway_certificate_key=/root/k.pem"]
    given = [part for word in words for part in ("-e", word)]
    missing = lab.play("serve.yml", *given, "-e", "gateway_certificate=/root/none.pem").refused()
    assert f"/root/none.pem is not on {head}: put it there" in " ".join(missing.output.split())

    before = lab.containers()
    lab.play("serve.yml", *given).succeeded()
    assert lab.containers() == before

    first = ssl.get_server_certificate((client.address, 8888))
    assert first.strip() == lab.root(head, "cat", "/root/c.pem").strip()
    lab.root(head, *made, *named, "60")
    limit = time.monotonic() + 60
    while (shown := ssl.get_server_certificate((client.address, 8888))) == first and time.monotonic() < limit:
        time.sleep(1)
    assert shown.strip() == lab.root(head, "cat", "/root/c.pem").strip()


@pytest.mark.slow
def test_a_stream_that_pauses_longer_than_every_default_goes_on(
    lab: Lab, client: Client, _as_it_was: None
) -> None:
    lab.verb(
        "engine", lab.hosts[0], "decode_tokens_per_s=0.012"
    )  # 83 s for a token; nginx' defaults are 60 and 75
    stream = client.openai().chat.completions.create(model=MODEL, messages=QUESTION, stream=True)

    began = time.monotonic()
    next(stream), next(stream)
    paused = time.monotonic() - began
    lab.verb("engine", lab.hosts[0], "--clear")
    text = "".join(piece.choices[0].delta.content or "" for piece in stream if piece.choices)

    assert paused > 76
    assert text


@pytest.fixture
def acme(lab: Lab) -> Iterator[tuple[str, str]]:
    """An ACME service on the worker: its directory, and a name of the head that it can look up there."""
    head, worker = lab.hosts
    at, name = lab.address(worker), "llm.example"
    config: dict[str, Any] = {"listenAddress": "0.0.0.0:14000", "managementListenAddress": "0.0.0.0:15000"}
    config |= {"certificate": "/root/acme.pem", "privateKey": "/root/acme.key"}
    config |= {
        "httpPort": 80,
        "tlsPort": 443,
        "ocspResponderURL": "",
        "externalAccountBindingRequired": False,
    }
    shell(lab, worker, "apt-get -q update && apt-get -qy install --no-install-recommends pebble")
    shell(
        lab,
        worker,
        "openssl req -x509 -newkey rsa:2048 -nodes -days 9 -keyout /root/acme.key -out /root/acme.pem"
        f" -subj /CN=acme -addext subjectAltName=IP:{at}",
    )
    shell(lab, worker, f"echo {lab.address(head)} {name} >>/etc/hosts")
    shell(lab, worker, f"echo '{json.dumps({'pebble': config})}' >/root/acme.json")
    run = "systemd-run --quiet --unit acme --setenv PEBBLE_VA_NOSLEEP=1 --setenv PEBBLE_WFE_NONCEREJECT=0"
    shell(lab, worker, f"{run} pebble -config /root/acme.json")
    certificate = lab.root(worker, "cat", "/root/acme.pem")
    shell(lab, head, f"cat >/root/acme.pem <<'END'\n{certificate}END\n")
    yield f"https://{at}:14000/dir", name
    lab.root(worker, "systemctl", "stop", "acme")
    shell(lab, worker, f"sed -i '/ {name}$/d' /etc/hosts")


@pytest.mark.slow
def test_an_acme_service_certifies_the_gateway_and_renews_it(
    lab: Lab, client: Client, acme: tuple[str, str], _as_it_was: None
) -> None:
    directory, name = acme
    words = ["gateway_tls=acme", f"gateway_names={name}", f"acme_directory={directory}"]
    given = [part for word in (*words, "acme_ca=/root/acme.pem") for part in ("-e", word)]
    before = lab.containers()

    lab.play("serve.yml", *given).succeeded()

    assert lab.containers() == before
    first = ssl.get_server_certificate((client.address, 8888))
    assert "Pebble" in issuer(lab, first)
    assert lab.play("serve.yml", *given).succeeded().changed == 0
    # As after two months: what the timer calls finds that it is time.
    renewal = "/etc/twinserve/gateway/acme/renewal/twinserve.conf"
    shell(lab, lab.hosts[0], f"sed -i '1i renew_before_expiry = 9999 days' {renewal}")
    lab.root(lab.hosts[0], "systemctl", "start", "twinserve-gateway-certificate")
    wait_for(lambda: ssl.get_server_certificate((client.address, 8888)) != first)
    assert lab.node(lab.hosts[0]).service("twinserve-gateway-certificate.timer").is_enabled


def issuer(lab: Lab, certificate: str) -> str:
    """Who signed it."""
    return shell(lab, lab.hosts[0], f"openssl x509 -noout -issuer <<'END'\n{certificate}END\n")
