"""A machine that is neither of the pair: on the management network and on both rails, as through a switch."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab_pair import Lab
from link_setups import RAILS

# The lab's networks, and each host's port on it.
NETWORKS = {"mgmt": "enP7s7", "rail1": RAILS[0], "rail2": RAILS[1]}
_SCAN = Path(__file__).with_name("port_scan.py")

Scan = dict[str, dict[str, Any]]


def address(lab: Lab, host: str, network: str) -> str:
    """The IPv4 address of a host on one of the networks."""
    return lab.root(host, "ip", "-br", "-4", "addr", "show", NETWORKS[network]).split()[2].split("/")[0]


@contextmanager
def third_host(lab: Lab) -> Iterator[str]:
    """Its network namespace, for `scan`."""
    name, cable = f"third-{lab.name}", f"lab-{lab.name}-cable"
    if Path("/run/netns", name).exists():
        _ip("netns", "del", name)  # of a run that was killed
    _ip("netns", "add", name)
    try:
        for number, network in enumerate(NETWORKS):
            near, far = f"n{number}", f"third{number}"
            _ip("-n", name, "link", "add", near, "type", "veth", "peer", "name", far, "netns", cable)
            _ip("-n", cable, "link", "set", far, "master", network, "up")
            own = f"{address(lab, lab.hosts[0], network).rpartition('.')[0]}.77/24"
            _ip("-n", name, "addr", "add", own, "dev", near)
            _ip("-n", name, "link", "set", near, "up")
        yield name
    finally:
        _ip("netns", "del", name)


def scan(lab: Lab, netns: str, networks: dict[str, str] | None = None) -> Scan:
    """All TCP ports, by HOST@NETWORK: of both hosts on all networks, or of the hosts on `networks`."""
    places = (
        {f"{host}@{network}": address(lab, host, network) for host in lab.hosts for network in NETWORKS}
        if networks is None
        else {f"{host}@{network}": address(lab, host, network) for network, host in networks.items()}
    )
    argv = ["ip", "netns", "exec", netns, "python3", str(_SCAN), *places.values()]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {place.removeprefix(f"{lab.name}-"): found[at] for place, at in places.items()}


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
