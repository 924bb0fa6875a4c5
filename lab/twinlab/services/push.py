"""Pushes an image to a registry over plain HTTP, blob by blob; what is there already is not sent again."""

from __future__ import annotations

import hashlib
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import LabError
from .tarball import Layer

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
TIMEOUT = 300.0


@dataclass(frozen=True)
class Image:
    """Layers, lowest first, and the image configuration without its rootfs."""

    layers: tuple[Layer, ...]
    config: Mapping[str, Any]

    def config_bytes(self) -> bytes:
        """The configuration as it is stored; its digest is the image's id on overlay2."""
        history = [{"created": self.config["created"], "created_by": "lab"} for _ in self.layers]
        rootfs = {"type": "layers", "diff_ids": [layer.diff_id for layer in self.layers]}
        return _canonical({**self.config, "rootfs": rootfs, "history": history})

    def manifest_bytes(self) -> bytes:
        """The manifest as it is stored."""
        config = self.config_bytes()
        return _canonical(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": {"mediaType": CONFIG, "size": len(config), "digest": digest_of(config)},
                "layers": [
                    {"mediaType": LAYER, "size": layer.size, "digest": layer.digest} for layer in self.layers
                ],
            }
        )

    def digest(self) -> str:
        """The manifest digest: what `docker pull REPOSITORY@DIGEST` takes."""
        return digest_of(self.manifest_bytes())


def push(image: Image, registry: str, repository: str, tag: str) -> str:
    """Push to http://REGISTRY/REPOSITORY:TAG and return the manifest digest. Raises LabError."""
    base = f"http://{registry}/v2/{repository}"
    for layer in image.layers:
        if not _is_there(f"{base}/blobs/{layer.digest}"):
            with layer.path.open("rb") as content:
                _upload(base, layer.digest, content, layer.size)
    config = image.config_bytes()
    if not _is_there(f"{base}/blobs/{digest_of(config)}"):
        _upload(base, digest_of(config), config, len(config))
    manifest = image.manifest_bytes()
    answer = _call("PUT", f"{base}/manifests/{tag}", manifest, {"Content-Type": MANIFEST})
    stored = answer.get("Docker-Content-Digest", "")
    if stored != image.digest():
        raise LabError(f"{registry} stored {repository}:{tag} as {stored}, not {image.digest()}")
    return stored


def digest_of(data: bytes) -> str:
    """A digest as registries write it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _canonical(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _is_there(url: str) -> bool:
    try:
        _call("HEAD", url)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return False
        raise LabError(f"HEAD {url}: {error.code} {error.reason}") from None
    return True


def _upload(base: str, digest: str, content: Any, size: int) -> None:
    """Open an upload and send the blob in one piece."""
    place = urllib.parse.urljoin(base, _call("POST", f"{base}/blobs/uploads/", b"")["Location"])
    joint = "&" if urllib.parse.urlsplit(place).query else "?"
    url = f"{place}{joint}{urllib.parse.urlencode({'digest': digest})}"
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
    try:
        _call("PUT", url, content, headers)
    except urllib.error.HTTPError as error:
        reason = error.read().decode(errors="replace")[:200]
        raise LabError(f"upload of {digest}: {error.code} {reason}") from None


def _call(
    method: str, url: str, data: Any = None, headers: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """The answer's headers; HTTPError for a refusal, LabError if nobody answers."""
    request = urllib.request.Request(url, data, dict(headers or {}), method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the registry is on this machine
    try:
        with opener.open(request, timeout=TIMEOUT) as answer:
            return dict(answer.headers.items())
    except urllib.error.HTTPError:
        raise
    except OSError as error:
        raise LabError(f"{method} {url}: {error}") from None
