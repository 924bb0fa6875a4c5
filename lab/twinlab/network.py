"""The lab's networks: a bridge for management, and cables between RDMA ports that can be pulled.

Each RDMA port is a veth whose far end lies in a namespace of its own, the "cable" one, where a bridge per
rail joins the two ends.  With the far ends down the ports stay up and lose carrier: as if the cable was out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .command import attempt, run
from .errors import LabError
from .hardware import MANAGEMENT, PORTS, RAILS, mac
from .layout import Host, Lab

_JUMBO = "9216"  # what a switch or cable lets through; the ports decide


def ip(*arguments: str, netns: str | None = None) -> str:
    """Run `ip`, in a network namespace if one is named."""
    return run(["ip", *(["-n", netns] if netns else []), *arguments])


def ip_json(*arguments: str, netns: str | None = None) -> list[dict[str, Any]]:
    """Run `ip -j` and return the list that it prints; empty when the namespace is gone."""
    done = attempt(["ip", *(["-n", netns] if netns else []), "-j", *arguments])
    if done.returncode != 0 or not done.stdout.strip():
        return []
    answer: list[dict[str, Any]] = json.loads(done.stdout)
    return [item for item in answer if item]


def namespaces(lab: Lab) -> list[str]:
    """The network namespaces of a lab."""
    return [lab.cable_netns, *(host.netns for host in lab.hosts)]


def exists(lab: Lab) -> bool:
    """Whether every part of the network is there."""
    return Path("/sys/class/net", lab.bridge).exists() and all(
        Path("/run/netns", name).exists() for name in namespaces(lab)
    )


def create(lab: Lab) -> None:
    """Build the networks; the hosts' ports are down and have no addresses, as after a power cycle."""
    for name in namespaces(lab):
        ip("netns", "add", name)
        ip("link", "set", "lo", "up", netns=name)
    ip("link", "add", lab.bridge, "type", "bridge")
    ip("addr", "add", f"{lab.network.gateway}/24", "dev", lab.bridge)
    ip("link", "set", lab.bridge, "up")
    run(
        ["ip", "netns", "exec", lab.cable_netns, "sysctl", "-q", "-w", "net.ipv6.conf.default.disable_ipv6=1"]
    )
    for rail in range(1, len(RAILS) + 1):
        ip(
            "link",
            "add",
            f"rail{rail}",
            "mtu",
            _JUMBO,
            "type",
            "bridge",
            "mcast_snooping",
            "0",
            netns=lab.cable_netns,
        )
        ip("link", "set", f"rail{rail}", "up", netns=lab.cable_netns)
    for host in lab.hosts:
        _connect(lab, host)


def _connect(lab: Lab, host: Host) -> None:
    """Give a host its ports."""
    outer = outer_end(lab, host)
    ip(
        "link",
        "add",
        outer,
        "type",
        "veth",
        "peer",
        "name",
        MANAGEMENT,
        "netns",
        host.netns,
        "address",
        mac(host.number, 1),
    )
    ip("link", "set", outer, "master", lab.bridge, "up")
    for port in PORTS:
        far = far_end(host, port.mac_index)
        ip(
            "link",
            "add",
            port.netdev,
            "address",
            mac(host.number, port.mac_index),
            "type",
            "veth",
            "peer",
            "name",
            far,
            "netns",
            lab.cable_netns,
            netns=host.netns,
        )
        if port.rail is not None:
            ip("link", "set", far, "mtu", _JUMBO, "master", f"rail{port.rail}", netns=lab.cable_netns)


def outer_end(lab: Lab, host: Host) -> str:
    """The name, on the controller, of what a host's management port is plugged into."""
    return f"{lab.bridge}-{host.letter}"


def far_end(host: Host, mac_index: int) -> str:
    """The name, in the cable namespace, of what a port is plugged into."""
    return f"{host.letter}{mac_index:x}"


def delete(lab: Lab) -> None:
    """Take the networks away, also half-built ones."""
    # By hand and first: those of a namespace would go only some time after it.
    for link in (*(outer_end(lab, host) for host in lab.hosts), lab.bridge):
        if Path("/sys/class/net", link).exists():
            ip("link", "del", link)
    for name in namespaces(lab):
        if Path("/run/netns", name).exists():
            ip("netns", "del", name)


def reset_ports(host: Host) -> None:
    """What a power cycle does to a network card: no addresses, no link, MTU 1500."""
    present = {link["ifname"] for link in ip_json("link", netns=host.netns)}
    for netdev in (MANAGEMENT, *(port.netdev for port in PORTS)):
        if netdev not in present:
            raise LabError(f"{host.name} has lost its port {netdev}: run `lab down`, then `lab up`")
        ip("addr", "flush", "dev", netdev, netns=host.netns)
        attempt(["ip", "-n", host.netns, "qdisc", "del", "dev", netdev, "root"])
        ip("link", "set", netdev, "down", "mtu", "1500", netns=host.netns)
    ip("route", "flush", "table", "main", netns=host.netns)


def addresses_of_this_machine() -> list[str]:
    """Every IPv4 address of the controller, in CIDR form."""
    return [
        f"{entry['local']}/{entry['prefixlen']}"
        for link in ip_json("-4", "addr")
        for entry in link.get("addr_info", [])
    ]
