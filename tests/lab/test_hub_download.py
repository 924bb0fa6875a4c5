"""The hub with the real `hf` client: what is downloaded, what each fault looks like to it, what is logged."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tensorfold.model import check_shards, open_checkpoint
from twinlab.services.hub import make_server
from twinlab.services.models import DRAFTER, MODEL, Repository, make_models

SHARD = "model-00003-of-00012.safetensors"


class Hub:
    """A hub that serves both models from its own directory, and the client to ask it with."""

    def __init__(self, folder: Path, port: int, log: Path) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"
        self._log = log
        self.home = folder.parent / "home"

    def describe(self, repository: Repository, gated: bool | str = False, **faults: Any) -> None:
        """Change a repository's description."""
        described = {"sha": repository.revision, "gated": gated, "faults": faults}
        (self.folder / f"{repository.name}.json").write_text(json.dumps(described))

    def hf(self, *words: str, token: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run `hf` with a home of its own."""
        client = shutil.which("hf", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        assert client, "the hf client is missing: make dev"
        env = {
            "HF_HOME": str(self.home),
            "HF_ENDPOINT": self.url,
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
            "PATH": os.environ["PATH"],
            **({"HF_TOKEN": token} if token else {}),
        }
        return subprocess.run([client, *words], env=env, capture_output=True, text=True, check=False)

    def download(self, repository: Repository, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """Download a repository at its revision."""
        return self.hf("download", repository.name, "--revision", repository.revision, *words, **more)

    def snapshot(self, repository: Repository) -> Path:
        """Where the client puts it."""
        name = repository.name.replace("/", "--")
        return self.home / "hub" / f"models--{name}" / "snapshots" / repository.revision

    def requests(self) -> list[dict[str, Any]]:
        """The log so far."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def get(self, path: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers of one plain request; redirects are not followed."""

        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_: Any) -> None:
                return None

        request = urllib.request.Request(
            self.url + path, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )
        try:
            with urllib.request.build_opener(Stay).open(request, timeout=10) as answer:
                return answer.status, answer.read(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            return error.code, error.read(), dict(error.headers)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    make_models(tmp_path / "hub", shard_bytes=65536)
    with (tmp_path / "log").open("a", buffering=1) as log:
        server = make_server("127.0.0.1", 0, tmp_path / "hub", log, token="hf_right")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Hub(tmp_path / "hub", server.server_port, tmp_path / "log")
        server.shutdown()
        server.server_close()


def _resolve(repository: Repository, name: str) -> str:
    return f"/{repository.name}/resolve/{repository.revision}/{name}"


def test_both_models_arrive_whole_at_their_pinned_revisions(hub: Hub) -> None:
    for repository in (MODEL, DRAFTER):
        done = hub.download(repository)
        assert done.returncode == 0, done.stderr
        assert hub.hf("cache", "verify", repository.name, "--revision", repository.revision).returncode == 0
    assert open_checkpoint(hub.snapshot(MODEL)).config["model_type"] == "glm5_next"
    assert check_shards(hub.snapshot(MODEL)) == 12 * 65536
    assert check_shards(hub.snapshot(DRAFTER)) == 65536


def test_a_second_download_asks_for_no_file(hub: Hub) -> None:
    hub.download(DRAFTER)
    before = len(hub.requests())
    assert hub.download(DRAFTER).returncode == 0
    assert [entry for entry in hub.requests()[before:] if "/resolve/" in entry["path"]] == []


def test_a_cut_transfer_is_tried_again(hub: Hub) -> None:
    hub.describe(DRAFTER, truncate=1, only=["model.safetensors"])
    assert hub.download(DRAFTER).returncode == 0
    gets = [e for e in hub.requests() if e["method"] == "GET" and e["path"].endswith("model.safetensors")]
    assert len(gets) == 2
    assert check_shards(hub.snapshot(DRAFTER)) == 65536


def test_wrong_bytes_are_accepted_by_the_client_and_found_by_its_verification(hub: Hub) -> None:
    hub.describe(MODEL, corrupt=True, only=[SHARD])
    assert hub.download(MODEL).returncode == 0
    verified = hub.hf("cache", "verify", MODEL.name, "--revision", MODEL.revision)
    assert verified.returncode == 1 and SHARD in verified.stdout + verified.stderr


@pytest.mark.parametrize(
    ("gated", "faults", "token", "text"),
    [
        (True, {}, None, "requires approval"),
        ("denied", {}, "hf_right", "requires approval"),
        (True, {}, "hf_wrong", "requires approval"),
        (False, {"short": True, "only": ["*.safetensors"]}, None, "Consistency check failed"),
        (False, {"no_etag": True}, None, "ETag"),
        (False, {"no_commit": True}, None, "X-Repo-Commit"),
        (False, {"error": {"status": 403, "on": "resolve"}}, None, "403"),
    ],
)
def test_each_fault_fails_with_its_own_words(
    hub: Hub, gated: bool | str, faults: dict[str, Any], token: str | None, text: str
) -> None:
    hub.describe(DRAFTER, gated=gated, **faults)
    done = hub.download(DRAFTER, token=token)
    assert done.returncode == 1
    assert text.lower() in (done.stdout + done.stderr).lower()


def test_a_gated_model_opens_with_its_token_which_is_not_logged(hub: Hub) -> None:
    hub.describe(DRAFTER, gated=True)
    assert hub.download(DRAFTER, token="hf_right").returncode == 0
    assert any(entry["with_token"] for entry in hub.requests())
    assert "hf_right" not in json.dumps(hub.requests())


def test_an_unknown_revision_or_model_is_named(hub: Hub) -> None:
    other = Repository(MODEL.name, "0" * 40, 0)
    assert "Revision not found" in (done := hub.download(other)).stderr + done.stdout
    missing = Repository("org/none", "0" * 40, 0)
    assert "not found" in (done := hub.download(missing)).stderr + done.stdout


def test_a_branch_is_resolved_to_the_revision(hub: Hub) -> None:
    done = hub.hf("download", DRAFTER.name)
    assert done.returncode == 0, done.stderr
    assert (hub.snapshot(DRAFTER) / "config.json").is_file()


def test_a_rate_limit_is_waited_for(hub: Hub) -> None:
    hub.describe(DRAFTER, rate_limit=1, only=["config.json"])
    assert hub.download(DRAFTER).returncode == 0
    assert 429 in [entry["status"] for entry in hub.requests()]


def test_ranges(hub: Hub) -> None:
    whole = hub.get(_resolve(MODEL, SHARD))[1]
    status, part, headers = hub.get(_resolve(MODEL, SHARD), Range="bytes=100-")
    assert (status, part) == (206, whole[100:])
    assert headers["Content-Range"] == f"bytes 100-{len(whole) - 1}/{len(whole)}"
    assert hub.get(_resolve(MODEL, SHARD), Range="bytes=100-199")[1] == whole[100:200]
    assert hub.get(_resolve(MODEL, SHARD), Range=f"bytes={len(whole)}-")[0] == 416
    hub.describe(MODEL, no_range=True)
    assert hub.get(_resolve(MODEL, SHARD), Range="bytes=100-")[:2] == (200, whole)


def test_a_large_file_is_named_by_sha256_and_a_small_one_by_git(hub: Hub) -> None:
    _, body, headers = hub.get(_resolve(MODEL, SHARD))
    assert headers["ETag"] == f'"{hashlib.sha256(body).hexdigest()}"'
    _, body, headers = hub.get(_resolve(MODEL, "config.json"))
    assert headers["ETag"] == f'"{hashlib.sha1(b"blob %d" % len(body) + bytes(1) + body).hexdigest()}"'


@pytest.mark.parametrize(
    "name", ["../../../log", "%2e%2e/../../log", "none.txt", f"../../{DRAFTER.name}.json"]
)
def test_nothing_outside_a_repository_is_served(hub: Hub, name: str) -> None:
    outside = hub.folder / MODEL.name / name.replace("%2e", ".")
    assert outside.exists() is (name != "none.txt")
    status, _, headers = hub.get(_resolve(MODEL, name))
    assert (status, headers.get("X-Error-Code")) == (404, "EntryNotFound")


def test_an_error_may_pass_after_some_requests(hub: Hub) -> None:
    hub.describe(MODEL, error={"status": 500, "times": 2})
    path = f"/api/models/{MODEL.name}/tree/{MODEL.revision}"
    assert [hub.get(path)[0] for _ in range(3)] == [500, 500, 200]


def test_a_moved_model_redirects(hub: Hub) -> None:
    hub.describe(MODEL, moved_to=DRAFTER.name)
    status, _, headers = hub.get(_resolve(MODEL, "config.json"))
    assert (status, headers["Location"]) == (
        307,
        _resolve(MODEL, "config.json").replace(MODEL.name, DRAFTER.name),
    )


def test_a_misspelt_fault_is_an_error_and_not_a_healthy_hub(hub: Hub) -> None:
    hub.describe(MODEL, trunkate=1)
    status, body, _ = hub.get(_resolve(MODEL, "config.json"))
    assert status == 500 and b"trunkate" in body


def test_a_slow_file_is_slow_and_whole(hub: Hub) -> None:
    whole = hub.get(_resolve(DRAFTER, "model.safetensors"))[1]
    hub.describe(DRAFTER, slow=200_000)
    started = time.monotonic()
    assert hub.get(_resolve(DRAFTER, "model.safetensors"))[1] == whole
    assert time.monotonic() - started > len(whole) / 200_000 / 2  # the last piece is not waited for


def test_models_made_twice_are_not_written_twice(tmp_path: Path) -> None:
    make_models(tmp_path, shard_bytes=1024)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    make_models(tmp_path, shard_bytes=1024)
    assert {path: path.stat().st_mtime_ns for path in before} == before and len(before) == 13
