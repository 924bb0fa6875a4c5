"""Probes of the two nodes of a pair, as the module `node_facts` returns them, with what tests vary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Cable 1 on the head, cable 0 on the worker: (netdev, hca, pci) of the main rail and of its PCIe twin.
HEAD_PORTS = (
    ("enp1s0f1np1", "rocep1s0f1", "0000:01:00.1"),
    ("enP2p1s0f1np1", "roceP2p1s0f1", "0002:01:00.1"),
)
WORKER_PORTS = (
    ("enp1s0f0np0", "rocep1s0f0", "0000:01:00.0"),
    ("enP2p1s0f0np0", "roceP2p1s0f0", "0002:01:00.0"),
)
NAMES = ("spark-a", "spark-b")


def link(*addresses: str, mtu: int = 9000, up: bool = True, carrier: bool = True) -> dict[str, Any]:
    """A network port as `ip` shows it."""
    shown = {"addresses": list(addresses), "unrouted": [], "leased": [], "ipv6": [], "mtu": mtu, "mac": None}
    return shown | {"master": None, "carries": [], "up": up, "carrier": carrier}


def maker(
    service: str | None = "networkd",
    profile: str | None = None,
    *files: str,
    lasting: bool = True,
    by_hand: tuple[str, ...] = (),
    link_local: bool = False,
) -> dict[str, Any]:
    """Who configured a port, as `network_owner.Maker`."""
    made = {"service": service, "profile": profile, "files": files, "lasting": lasting, "by_hand": by_hand}
    return made | {"link_local": link_local}


def network(ports: tuple[tuple[str, str, str], ...], links: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a probe that concerns the link; a port that `links` does not name is up and bare."""
    known = {"enP7s7": link("192.0.2.11/24", mtu=1500)} | {netdev: link() for netdev, _, _ in ports}
    known.update(links)
    devices = [{"netdev": netdev, "hca": hca, "pci": pci} for netdev, hca, pci in reversed(ports)]
    makers = {name: maker() for name in known}
    return {"devices": devices, "network": {"links": known, "makers": makers, "netplan": {}, "routes": {}}}


def head(**links: Any) -> dict[str, Any]:
    """The head, with links by netdev."""
    return network(HEAD_PORTS, links)


def worker(**links: Any) -> dict[str, Any]:
    """The worker, with links by netdev."""
    return network(WORKER_PORTS, links)
