"""Put a netplan file live on this node, and take it back when it costs the management address."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import way_back
from .netdevs import read_links
from .shell import CommandError, run

# Seconds: for the addresses that must stay, for those that are new, and for the whole of it.
_MANAGEMENT, _PORT, _LIMIT = 5, 15, 120
_WAY_BACK = "fabric"


class ApplyError(RuntimeError):
    """The file was not kept; the text says why, and that the state before it is back."""


def apply_file(path: Path, content: str, ports: Sequence[dict[str, Any]]) -> None:
    """Write, check as merged, apply, wait for what was asked; undo it all when the node would be lost.

    What must survive are the addresses of all other ports, by one of which somebody reaches this node.
    """
    before = path.read_text() if path.is_file() else None
    others = _addresses_beside({port["netdev"] for port in ports})
    _arm(path, before)
    _write(path, content)
    try:
        run(["netplan", "generate"])
        run(["netplan", "apply"], timeout=60)
        for address in others:
            _wait(
                partial(_has_address, address),
                _MANAGEMENT,
                f"management address {address} did not return within {_MANAGEMENT} s",
            )
        for port in ports:
            _wait(
                partial(is_set, port),
                _PORT,
                f"{port['netdev']} did not get {port['address']} within {_PORT} s",
            )
    except (CommandError, ApplyError) as error:
        _restore(path, before)
        raise ApplyError(f"{error}; fabric file rolled back") from error
    finally:
        way_back.disarm(_WAY_BACK)
        path.with_suffix(".before").unlink(missing_ok=True)


def _arm(path: Path, before: str | None) -> None:
    """Should this program end half way, say with the ssh session that it cut, the node goes back."""
    saved = path.with_suffix(".before")  # netplan reads *.yaml only
    saved.unlink(missing_ok=True)
    undo = ["rm", "-f", str(path)]
    if before is not None:
        _write(saved, before)
        undo = ["mv", str(saved), str(path)]
    way_back.arm(_WAY_BACK, _LIMIT, [undo, ["netplan", "apply"]])


def _addresses_beside(netdevs: set[str]) -> list[str]:
    links = {name: link for name, link in read_links().items() if name not in netdevs}
    return [one.split("/")[0] for link in links.values() for one in link["addresses"]]


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


def bring_up(netdevs: Sequence[str], nothing: float = 10.0, more: float = 2.0) -> list[str]:
    """Set ports up and give them time to find their peers; returns those that have carrier afterwards.

    Waits until all have it, `nothing` seconds while none has, and `more` seconds after the last that came:
    the second port of a card has no cable and never gets it.
    """
    for netdev in netdevs:
        run(["ip", "link", "set", netdev, "up"])
    limit = time.monotonic() + nothing
    live: list[str] = []
    while time.monotonic() < limit and len(live) < len(netdevs):
        time.sleep(0.1)
        links = read_links()
        now = [netdev for netdev in netdevs if links[netdev]["carrier"]]
        if len(now) > len(live):
            limit, live = time.monotonic() + more, now
    return live
