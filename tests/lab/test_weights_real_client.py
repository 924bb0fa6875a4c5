"""The watched download and the full check with the real `hf` client, against a hub that has faults."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import hf_cache
from ansible_collections.twinserve.pair.plugins.module_utils.runtime_archive import install, pack, version_of
from ansible_collections.twinserve.pair.plugins.plugin_utils.runtime_source import runtime_files
from test_hub_download import SHARD, Hub
from twinlab.services.hub import make_server
from twinlab.services.models import MODEL, make_models


class Node:
    """A node with the packed runtime, as a job of systemd starts it."""

    def __init__(self, hub: Hub, folder: Path) -> None:
        self.hub, self.home, self.numbers = hub, folder / "home", folder / "progress.json"
        files = runtime_files()
        install(pack(files), version_of(files), folder / "lib", activate=False)
        self._lib = folder / "lib" / version_of(files)

    def start(self, verb: str, *options: str) -> subprocess.Popen[str]:
        client = shutil.which("hf", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        assert client, "the hf client is missing: make dev"
        words = [sys.executable, "-P", "-m", "twinserve.weights", verb, "--home", str(self.home)]
        words += ["--repo", MODEL.name, "--revision", MODEL.revision, *options]
        words += ["--", client, "download", MODEL.name, "--revision", MODEL.revision] * (verb == "fetch")
        env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self._lib),
            "TWINSERVE_PROGRESS": str(self.numbers),
            "HF_HOME": str(self.home),
            "HF_ENDPOINT": self.hub.url,
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        }
        return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, verb: str, *options: str) -> tuple[int, list[str]]:
        job = self.start(verb, *options)
        said, _ = job.communicate(timeout=120)
        return job.returncode, said.splitlines()

    @property
    def lacking(self) -> list[str]:
        return hf_cache.lacking(str(self.home), MODEL.name, MODEL.revision)[0]

    @property
    def begun(self) -> list[Path]:
        return list(self.home.glob("hub/models--*/blobs/*.incomplete"))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    make_models(tmp_path / "hub", shard_bytes=1 << 20)
    with (tmp_path / "log").open("a", buffering=1) as log:
        server = make_server("127.0.0.1", 0, tmp_path / "hub", log)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Node(Hub(tmp_path / "hub", server.server_port, tmp_path / "log"), tmp_path)
        server.shutdown()
        server.server_close()


def test_a_download_arrives_and_another_asks_nobody(node: Node) -> None:
    code, said = node.run("fetch")
    assert (code, node.lacking) == (0, []), said
    numbers = json.loads(node.numbers.read_text())
    assert numbers["total"] > 12 << 20
    asked = len(node.hub.requests())
    assert node.run("fetch") == (0, [f"{MODEL.name}@9eaebb7c is here already"])
    assert len(node.hub.requests()) == asked


def test_a_download_that_was_cut_off_is_cleaned_up_and_ends_right(node: Node) -> None:
    node.hub.describe(MODEL, slow=200_000, only=["*.safetensors"])
    job = node.start("fetch")
    limit = time.monotonic() + 60
    while not node.begun and time.monotonic() < limit:
        time.sleep(0.1)
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=60)
    assert job.returncode == 143
    left = node.begun
    assert left
    node.hub.describe(MODEL)
    code, said = node.run("fetch")
    assert (code, node.lacking, node.begun) == (0, [], []), said
    assert any(line.startswith(f"removed {len(left)} files of downloads that were cut off") for line in said)


def test_m10_a_hub_that_stands_still_is_given_up_after_two_tries(node: Node) -> None:
    node.hub.describe(MODEL, slow=0.02, only=[SHARD])
    code, said = node.run("fetch", "--stall", "10")
    assert code == 1
    told = [line for line in said if line.startswith("no progress")]
    assert told == ["no progress for 10 s; trying once more", "no progress for 10 s"]
    assert node.lacking == [SHARD]


def test_a_payload_that_was_cut_short_is_fetched_again(node: Node) -> None:
    """The client itself takes it for whole."""
    assert node.run("fetch")[0] == 0
    payload = (hf_cache.snapshot_folder(str(node.home), MODEL.name, MODEL.revision) / SHARD).resolve()
    payload.write_bytes(payload.read_bytes()[:1000])
    assert node.lacking == [SHARD]
    code, said = node.run("fetch")
    assert (code, node.lacking) == (0, [])
    assert said[0].startswith(f"removed {payload}: 1000 bytes instead of ")


def test_m08_a_refusal_of_the_client_is_the_last_that_is_said(node: Node) -> None:
    node.hub.describe(MODEL, gated="denied")
    code, said = node.run("fetch")
    assert code == 1
    assert "Access denied" in said[-1]
