"""What we keep on a node: which of our files stand there, and what is in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ETC = "/etc/twinserve"
UNITS = "/etc/systemd/system"
SBIN = "/usr/local/sbin"
RUNTIME = "/usr/local/lib/twinserve"

# On the workers only those of the node.
MONITORING = (
    "twinserve-prometheus.service",
    "twinserve-alertmanager.service",
    "twinserve-node-exporter.service",
    "twinserve-node-metrics.timer",
    "twinserve-node-metrics.service",
)
PATHS = (
    f"{ETC}/rank.json",
    f"{ETC}/pair.json",
    f"{ETC}/known_hosts",
    f"{ETC}/firewall.nft",
    f"{UNITS}/twinserve.service",
    f"{UNITS}/twinserve-rank.service",
    f"{ETC}/gateway/nginx.conf",
    f"{ETC}/gateway/upstream.conf",
    f"{ETC}/gateway/keys.conf",
    f"{ETC}/gateway/certificate.env",
    f"{ETC}/gateway/bringing",
    f"{UNITS}/twinserve-gateway.service",
    f"{UNITS}/twinserve-gateway-certificate.service",
    f"{UNITS}/twinserve-gateway-certificate.path",
    f"{UNITS}/twinserve-gateway-certificate.timer",
    f"{UNITS}/twinserve-firewall.service",
    *(f"{UNITS}/{name}" for name in MONITORING),
    f"{ETC}/monitoring/bringing",
    f"{SBIN}/twinserve-rank",
    f"{SBIN}/twinserve-control",
    f"{SBIN}/twinserve-image",
    "/etc/sudoers.d/twinserve",
    "/etc/sudoers.d/twinserve-image",
)


def fingerprint(content: str, mode: str) -> str:
    """One text for what a file holds and who may read it."""
    return f"{mode} sha256:{text_hash(content)}"


def text_hash(content: str) -> str:
    """sha256 of a text, in hex."""
    return hashlib.sha256(content.encode()).hexdigest()


def read_fingerprints(paths: Iterable[str] = PATHS) -> dict[str, str]:
    """Fingerprint of each path that exists on this node."""
    found = {}
    for path in map(Path, paths):
        if path.is_file():
            mode = f"{path.stat().st_mode & 0o7777:04o}"
            found[str(path)] = fingerprint(path.read_text(errors="replace"), mode)
    return found


def differing(wanted: Iterable[Mapping[str, Any]], present: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Those wanted files ({path, content, mode}) that the node does not have so."""
    return [one for one in wanted if present.get(one["path"]) != fingerprint(one["content"], one["mode"])]
