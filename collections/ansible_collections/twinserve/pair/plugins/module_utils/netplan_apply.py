"""Put a netplan file live on this node, and take it back when it costs the management address."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from .netdevs import read_links
from .shell import CommandError, run


class ApplyError(RuntimeError):
    """The file was not kept; the text says why, and that the state before it is back."""


def apply_file(path: Path, content: str, ports: Sequence[dict[str, Any]], management: str | None) -> None:
    """Write, check as merged, apply, wait for what was asked; undo it all when the node would be lost."""
    before = path.read_text() if path.is_file() else None
    _write(path, content)
    try:
        run(["netplan", "generate"])
        run(["netplan", "apply"], timeout=60)
        if management:
            _wait(
                lambda: _has_address(management),
                5,
                f"management address {management} did not return within 5 s",
            )
        for port in ports:
            _wait(
                partial(is_set, port),
                15,
                f"{port['netdev']} did not get {port['address']} within 15 s",
            )
    except (CommandError, ApplyError) as error:
        _restore(path, before)
        raise ApplyError(f"{error}; fabric file rolled back") from error


def _write(path: Path, content: str) -> None:
    staged = path.with_suffix(".new")
    staged.touch(mode=0o600)
    staged.chmod(0o600)
    staged.write_text(content)
    staged.rename(path)


def _restore(path: Path, before: str | None) -> None:
    if before is None:
        path.unlink(missing_ok=True)
    else:
        _write(path, before)
    run(["netplan", "apply"], timeout=60)


def _has_address(address: str) -> bool:
    return any(one.split("/")[0] == address for link in read_links().values() for one in link["addresses"])


def is_set(port: dict[str, Any]) -> bool:
    """Whether the port has the address and the MTU that it shall have."""
    link = read_links().get(port["netdev"], {})
    return port["address"] in link.get("addresses", []) and link.get("mtu") == port["mtu"]


def _wait(condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            raise ApplyError(otherwise)
        time.sleep(0.1)


def bring_up(netdevs: Sequence[str], seconds: float = 5.0) -> list[str]:
    """Set ports up and give them time to find their peer; returns those that have carrier afterwards."""
    for netdev in netdevs:
        run(["ip", "link", "set", netdev, "up"])
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        links = read_links()
        if all(links[netdev]["carrier"] for netdev in netdevs):
            break
        time.sleep(0.2)
    links = read_links()
    return [netdev for netdev in netdevs if links[netdev]["carrier"]]
