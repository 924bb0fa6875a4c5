"""Where a host's Docker keeps images: its own store, or containerd's, as newer installations have it."""

from __future__ import annotations

import json

from .errors import LabError
from .layout import Host
from .power import run_in

STORES = ("overlay2", "containerd")
_CONFIG = "/etc/docker/daemon.json"


def configured(text: str, store: str) -> str:
    """Docker's configuration with that store."""
    config = json.loads(text)
    config["features"] = {**config.get("features", {}), "containerd-snapshotter": store == "containerd"}
    return json.dumps(config, indent=2) + "\n"


def choose(host: Host, store: str) -> None:
    """Restart the host's Docker with that store; each keeps images of its own.  Raises LabError."""
    text = _do(host, ["cat", _CONFIG])
    _do(host, ["sh", "-c", f"cat >{_CONFIG}.new && mv {_CONFIG}.new {_CONFIG}"], configured(text, store))
    # However often that was done: systemd would refuse the fourth restart within a minute.
    _do(host, ["systemctl", "reset-failed", "docker"])
    _do(host, ["systemctl", "restart", "docker"])


def _do(host: Host, argv: list[str], stdin: str | None = None) -> str:
    done = run_in(host, argv, stdin)
    if done.returncode != 0:
        raise LabError(f"{host.name}: {done.stderr.strip()}")
    return done.stdout
