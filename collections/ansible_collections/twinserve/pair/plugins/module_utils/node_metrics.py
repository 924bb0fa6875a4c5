"""`python3 -m twinserve.node_metrics`: what a node knows of itself and the node exporter does not.

Run by a timer on each node while monitoring is on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .agent import paths
from .counters import read_counters
from .exposition import Metric, single, write
from .firewall_loaded import is_intact
from .firewall_rules import FILE
from .gateway import traffic
from .gateway.certificate import SHOWN
from .gateway.certificate import read as read_certificate
from .gids import find_v2
from .managed_files import ETC
from .services import is_active, read_services
from .shell import CommandError
from .sysfs import Device, port_folder, read_devices

_SUPERVISOR = "twinserve.service"


def metrics(root: Path = Path("/"), version: str = paths.VERSION) -> Iterator[Metric]:
    """Everything of this node. Raises OSError, CommandError or ValueError."""
    devices = read_devices(root, {})
    rails = (_read(root, paths.LINK) or {"rails": []})["rails"]
    yield from about(_read(root, paths.PLAN), version)
    yield errors({device: read_counters(port) for device, port in _ports(root, devices)})
    yield from link(rails, devices)
    yield from supervisor(read_services())
    pair = _read(root, Path(ETC, "pair.json")) or {}
    if pair.get("api", {}).get("gateway"):
        yield from gateway(traffic.read(_below(root, traffic.SOCKET)))
    yield certificate(_end(root))
    yield firewall(is_intact(_below(root, Path(FILE))))


def about(plan: Mapping[str, Any] | None, version: str) -> Iterator[Metric]:
    """The versions that the node has; a node without a plan is no rank yet."""
    if plan is not None:
        labels = {"rank": plan["rank"], "image": plan["image"], "digest": plan["digest"], "runtime": version}
        yield Metric("twinserve_rank_info", "What the rank is started from.", [(labels, 1)])


def errors(found: Mapping[Device, Mapping[str, int]]) -> Metric:
    """The error counters of all RoCE devices."""
    values = [
        ({"hca": device.hca, "netdev": device.netdev, "counter": name}, float(value))
        for device, counted in found.items()
        for name, value in counted.items()
    ]
    return Metric("twinserve_roce_errors_total", "Error counters of the device.", values, kind="counter")


def link(rails: Sequence[Mapping[str, Any]], devices: Iterable[Device]) -> Iterator[Metric]:
    """The rails that this rank was started with: whether they are as they were then."""
    known = {device.hca: device for device in devices}
    ends = [({"hca": rail["hca"], "netdev": rail["netdev"]}, rail, known.get(rail["hca"])) for rail in rails]
    yield Metric(
        "twinserve_rail_up",
        "Whether the rail's device is there and its port has a live other end.",
        [(labels, device is not None and device.up) for labels, _, device in ends],
    )
    yield Metric(
        "twinserve_gid_moved",
        "Whether the RoCE v2 GID of a rail that is up has another index than at the start, or is gone.",
        [
            (labels, device is not None and device.up and _moved(rail, device))
            for labels, rail, device in ends
        ],
    )


def supervisor(units: Mapping[str, Mapping[str, str]]) -> Iterator[Metric]:
    """On the head: whether the supervisor runs, and whether it should."""
    unit = units.get(_SUPERVISOR, {})
    if unit.get("LoadState") == "loaded":
        enabled = unit.get("UnitFileState") == "enabled"
        values = [({"should": "yes" if enabled else "no"}, float(is_active(unit)))]
        yield Metric("twinserve_supervisor_active", "Whether the supervisor runs.", values)


def gateway(found: traffic.Traffic | None) -> Iterator[Metric]:
    """On the head of a pair that has one: whether the gateway answers, and what it counts."""
    yield single("twinserve_gateway_up", "Whether the pair's gateway answers.", found is not None)
    if found is None:
        return
    yield Metric(
        "twinserve_gateway_requests_total",
        "Requests to the gateway, with one for each of our looks.",
        [({}, found.requests)],
        kind="counter",
    )
    yield Metric(
        "twinserve_gateway_connections",
        "Connections to the gateway by what they do; the active ones are all others together.",
        [({"state": state}, count) for state, count in found.connections.items()],
    )
    yield Metric(
        "twinserve_gateway_dropped_total",
        "Connections that the gateway took and could not serve.",
        [({}, found.dropped)],
        kind="counter",
    )


def certificate(end: float | None) -> Metric:
    """When the certificate that the gateway shows ends, in seconds since 1970."""
    return single("twinserve_certificate_end_seconds", "When the gateway's certificate ends.", end)


def firewall(intact: bool | None) -> Metric:
    """On a node with a firewall of ours: whether its rules are loaded."""
    return single(
        "twinserve_firewall_loaded", "Whether the firewall's rules are loaded as they were written.", intact
    )


def _below(root: Path, path: Path) -> Path:
    return root / str(path).lstrip("/")


def _read(root: Path, path: Path) -> dict[str, Any] | None:
    file = _below(root, path)
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None


def _ports(root: Path, devices: Iterable[Device]) -> Iterator[tuple[Device, Path]]:
    for device in devices:
        if port := port_folder(root, device.hca):
            yield device, port


def _moved(rail: Mapping[str, Any], device: Device) -> bool:
    found = find_v2(device.gids, rail["address"])
    return found is None or found.index != rail["gid_index"]


def _end(root: Path) -> float | None:
    found = read_certificate(_below(root, SHOWN))
    return found["ends"] if found else None


def main() -> int:
    """Write the file; what cannot be read fails the unit, and an alert tells that the file is old."""
    try:
        write("node", list(metrics()))
    except (OSError, ValueError, KeyError, CommandError) as error:
        print(f"the node's metrics cannot be written: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
