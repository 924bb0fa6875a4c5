"""What has to happen to the head so that the gateway stands as it is configured: pure, from the probe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..managed_files import UNITS, differing, fingerprint
from ..services import GATEWAY, node_runs
from .certificate import is_good
from .keys import FOLDER, KEYS, keys_conf

_PACKAGES = {
    "nginx": "nginx",
    "openssl": "openssl",
    "certbot": "certbot",
    "cryptography": "python3-cryptography",
}
# While it is there, an installation was interrupted.
_BRINGING = FOLDER / "bringing"
_WATCHER = f"{UNITS}/twinserve-gateway-certificate."
# What makes a certificate, beside the server itself and what reads it.
_MAKERS = {"own_ca": ["cryptography"], "files": [], "acme": ["certbot"]}


def plan(
    node: Mapping[str, Any],
    wanted: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    names: Sequence[str],
    keys: Mapping[str, str],
    now: float,
) -> dict[str, Any]:
    """What to do, by step; `needed` says whether there is anything to do at all, `soon` what may not wait.

    `install` the `packages`, or finish that, `write` files, make `new_keys` and `certificate`, remove `stale`
    units, `start` it.
    Changed `units` have systemd read all anew, and wait until no rank runs. `now` is in seconds since 1970.
    """
    gateway = node.get("gateway") or {}
    present = node.get("files") or {}
    files = differing(wanted, present)
    paths = {one["path"] for one in wanted}
    units = [one for one in files if one["path"].startswith(UNITS) and one["path"] in present]
    tools = ["nginx", "openssl", *_MAKERS[settings["gateway_tls"]]]
    packages = [_PACKAGES[tool] for tool in tools if not node["tools"].get(tool)]
    steps = {
        "packages": packages,
        "install": bool(packages) or str(_BRINGING) in present,
        "write": [one for one in files if one not in units],
        "new_keys": not _has_keys(node, keys),
        "certificate": settings["gateway_tls"] == "own_ca"
        and not is_good(gateway.get("own_certificate"), names, now),
        "stale": [path for path in present if path.startswith(_WATCHER) and path not in paths],
        "start": not node_runs(node, GATEWAY),
    }
    soon = any(steps.values())
    return {"needed": soon or bool(units), "soon": soon, "units": units, **steps}


def _has_keys(node: Mapping[str, Any], keys: Mapping[str, str]) -> bool:
    if not keys:
        return bool((node.get("gateway") or {}).get("own_key"))
    return (node.get("files") or {}).get(str(KEYS)) == fingerprint(keys_conf(keys), "0600")
