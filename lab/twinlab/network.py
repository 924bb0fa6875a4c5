"""The lab's networks: management, on which the controller is too, and RDMA cables that can be pulled.

Every port of a host is a veth whose far end lies in a namespace of its own, the "cable" one, where a bridge
for each network joins the ends.  So the machine's firewall sees only one interface, and to pull a cable is to
take its far ends down: the ports then stay up and lose carrier.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .command import attempt, run
from .errors import LabError
from .hardware import mac
from .layout import Host, Lab

_MANAGEMENT_INDEX = 1
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
    return Path("/sys/class/net", lab.uplink).exists() and all(
        Path("/run/netns", name).exists() for name in namespaces(lab)
    )


def create(lab: Lab) -> None:
    """Build the networks; the hosts' ports are down and have no addresses, as after a power cycle."""
    for name in namespaces(lab):
        ip("netns", "add", name)
        ip("link", "set", "lo", "up", netns=name)
    without_ipv6 = ["sysctl", "-q", "-w", "net.ipv6.conf.default.disable_ipv6=1"]
    run(["ip", "netns", "exec", lab.cable_netns, *without_ipv6])
    for bridge, mtu in (("mgmt", "1500"), *((f"rail{rail}", _JUMBO) for rail in lab.hardware.rails)):
        settings = ["mtu", mtu, "type", "bridge", "mcast_snooping", "0"]
        ip("link", "add", bridge, *settings, netns=lab.cable_netns)
        ip("link", "set", bridge, "up", netns=lab.cable_netns)
    ip("link", "add", lab.uplink, "type", "veth", "peer", "name", "controller", "netns", lab.cable_netns)
    ip("link", "set", "controller", "master", "mgmt", "up", netns=lab.cable_netns)
    ip("addr", "add", f"{lab.network.gateway}/24", "dev", lab.uplink)
    ip("link", "set", lab.uplink, "up")
    for host in lab.hosts:
        _connect(lab, host)


def _connect(lab: Lab, host: Host) -> None:
    """Give a host its ports."""
    _port(lab, host, host.hardware.management, _MANAGEMENT_INDEX)
    far = far_end(host, _MANAGEMENT_INDEX)
    ip("link", "set", far, "master", "mgmt", "up", netns=lab.cable_netns)
    for port in host.hardware.ports:
        _port(lab, host, port.netdev, port.mac_index)
        far = far_end(host, port.mac_index)  # stays down until a cable goes in
        ip("link", "set", far, "mtu", _JUMBO, "master", f"rail{port.rail}", netns=lab.cable_netns)


def _port(lab: Lab, host: Host, netdev: str, index: int) -> None:
    near = ["link", "add", netdev, "address", mac(host.number, index), "type", "veth"]
    ip(*near, "peer", "name", far_end(host, index), "netns", lab.cable_netns, netns=host.netns)


def far_end(host: Host, mac_index: int) -> str:
    """The name, in the cable namespace, of what a port is plugged into."""
    return f"{host.letter}{mac_index:x}"


def delete(lab: Lab) -> None:
    """Take the networks away, also half-built ones."""
    # First, and by hand: with the namespace of its other end it would go only some time later.
    if Path("/sys/class/net", lab.uplink).exists():
        ip("link", "del", lab.uplink)
    for name in namespaces(lab):
        if Path("/run/netns", name).exists():
            ip("netns", "del", name)


def reset_ports(host: Host) -> None:
    """What a power cycle does to a network card: no addresses, no link, MTU 1500."""
    present = {link["ifname"] for link in ip_json("link", netns=host.netns)}
    for netdev in (host.hardware.management, *(port.netdev for port in host.hardware.ports)):
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
