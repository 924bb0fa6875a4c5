"""An image of our own making in Debian's real registry: digests, what is sent twice, what is refused.

Tests marked `lab` need the registry's program, which `lab up` installs.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import socket
import subprocess
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from twinlab.errors import LabError
from twinlab.services.push import Image, digest_of, push
from twinlab.services.tarball import make_layer, read_layer

CONFIG = {
    "architecture": "amd64",
    "os": "linux",
    "created": "2026-10-01T00:00:00Z",
    "config": {"Env": ["A=b"]},
}


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("registry")
    address = f"127.0.0.1:{_port()}"
    config = {
        "version": 0.1,
        "log": {"level": "info"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": address},
    }
    (folder / "config.json").write_text(json.dumps(config))
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        ["docker-registry", "serve", str(folder / "config.json")], stdout=log, stderr=log,
        env={"OTEL_TRACES_EXPORTER": "none", "PATH": "/usr/bin"},
    )  # fmt: skip
    deadline = time.monotonic() + 20
    while True:
        try:
            urllib.request.urlopen(f"http://{address}/v2/", timeout=2).close()
            break
        except OSError:
            assert time.monotonic() < deadline and process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
    yield address
    process.terminate()
    process.wait()


@pytest.fixture
def image(tmp_path: Path) -> Image:
    tree = tmp_path / "tree"
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/tool").write_text("#!/bin/sh\n")
    (tree / "usr/bin/tool").chmod(0o755)
    (tree / "bin").symlink_to("usr/bin")
    (tree / "dev").mkdir()
    (tree / "dev/left-out").write_text("x")
    return Image((make_layer(tree, tmp_path / "layer.tar.gz"),), CONFIG)


def _get(url: str, accept: str = "*/*") -> bytes:
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return bytes(answer.read())


@pytest.mark.lab
def test_a_pushed_image_is_found_by_its_digest(registry: str, image: Image) -> None:
    digest = push(image, registry, "org/engine", "v1")
    manifest = json.loads(
        _get(
            f"http://{registry}/v2/org/engine/manifests/{digest}",
            "application/vnd.docker.distribution.manifest.v2+json",
        )
    )
    config = json.loads(_get(f"http://{registry}/v2/org/engine/blobs/{manifest['config']['digest']}"))
    blob = _get(f"http://{registry}/v2/org/engine/blobs/{manifest['layers'][0]['digest']}")
    assert digest == image.digest()
    assert config["config"] == {"Env": ["A=b"]}
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(gzip.decompress(blob)).hexdigest()}"]


@pytest.mark.lab
def test_a_second_push_sends_only_the_manifest(
    registry: str, image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = push(image, registry, "org/twice", "v1")
    image.layers[0].path.unlink()  # nothing is left that could be sent
    assert push(image, registry, "org/twice", "v2") == first
    assert json.loads(_get(f"http://{registry}/v2/org/twice/tags/list"))["tags"] == ["v1", "v2"]


def test_the_same_files_give_the_same_layer(image: Image, tmp_path: Path) -> None:
    time.sleep(0.01)
    (tmp_path / "tree/usr/bin/tool").touch()
    again = make_layer(tmp_path / "tree", tmp_path / "again.tar.gz")
    assert (again.digest, again.diff_id) == (image.layers[0].digest, image.layers[0].diff_id)


def test_a_layer_holds_names_modes_and_links_but_no_devices(image: Image) -> None:
    with tarfile.open(image.layers[0].path) as tar:
        found = {member.name: (oct(member.mode & 0o777), member.uid, member.linkname) for member in tar}
    assert found["usr/bin/tool"] == ("0o755", 0, "")
    assert found["bin"][2] == "usr/bin"
    assert "dev" in found and "dev/left-out" not in found


def test_a_layer_is_read_back_only_if_it_was_finished(image: Image, tmp_path: Path) -> None:
    layer = image.layers[0]
    assert read_layer(layer.path) == layer
    layer.path.with_suffix(".json").unlink()
    assert read_layer(layer.path) is None


@pytest.mark.lab
def test_a_bad_blob_is_refused_by_name(registry: str, image: Image) -> None:
    image.layers[0].path.write_bytes(b"something else".ljust(image.layers[0].size, b"x"))
    with pytest.raises(LabError, match=image.layers[0].digest):
        push(image, registry, "org/bad", "v1")


def test_no_registry_is_one_error(image: Image) -> None:
    with pytest.raises(LabError, match="refused"):
        push(image, f"127.0.0.1:{_port()}", "org/none", "v1")


def test_a_digest_is_of_the_bytes() -> None:
    assert digest_of(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
