"""Starts and stops what serves the hosts: packages, images, models, and the simulator of their hardware."""

from __future__ import annotations

import http.client
import time

from .. import processes
from ..apt_sources import Distribution
from ..errors import LabError
from ..layout import APT_PORT, HUB_PORT, REGISTRY_PORT, Lab
from . import registry

_START_TIMEOUT = 20.0  # seconds
PORTS = {"apt": APT_PORT, "registry": REGISTRY_PORT, "hub": HUB_PORT}


def commands(lab: Lab, distribution: Distribution) -> dict[str, list[str]]:
    """The command line of every service."""
    gateway = lab.network.gateway
    lab.hub.mkdir(parents=True, exist_ok=True)
    return {
        "simulator": processes.python("machine.simulator", lab.name),
        "apt": processes.python(
            "services.apt_mirror",
            *("--listen", gateway, "--port", str(APT_PORT), "--cache", str(lab.root / "apt")),
            *(source.uri for source in distribution.sources),
        ),
        "registry": registry.write_config(lab),
        "hub": processes.python(
            "services.hub",
            *("--listen", gateway, "--port", str(HUB_PORT), "--root", str(lab.hub)),
            *("--log", str(lab.logs / "hub-requests.log")),
        ),
    }


def start(lab: Lab, distribution: Distribution) -> list[str]:
    """Start the services that do not run; returns their names."""
    started = []
    for name, argv in commands(lab, distribution).items():
        if not processes.alive(lab, name):
            if name == "simulator":
                lab.drawn_quirks.unlink(missing_ok=True)
            processes.spawn(lab, name, argv)
            started.append(name)
    for name in started:
        _wait(lab, name)
    return started


def switch(lab: Lab, distribution: Distribution, name: str, is_on: bool) -> None:
    """Start one of them, or end it in the middle of whatever it does."""
    if not is_on:
        processes.stop(lab, name, timeout=0)
    elif not processes.alive(lab, name):
        processes.spawn(lab, name, commands(lab, distribution)[name])
        _wait(lab, name)


def running(lab: Lab) -> dict[str, bool]:
    """Every service, and whether it lives."""
    return {name: processes.alive(lab, name) for name in ("simulator", *PORTS)}


def stop(lab: Lab) -> None:
    """Stop all of them."""
    for name in ("simulator", *PORTS):
        processes.stop(lab, name)


def _wait(lab: Lab, name: str) -> None:
    """Wait until a service does its work: answers HTTP, whatever it says, or has drawn the hosts' devices."""
    end = time.monotonic() + _START_TIMEOUT
    while not _works(lab, name):
        if not processes.alive(lab, name):
            raise LabError(f"the lab's {name} ended at once: {processes.last_line(lab, name)}")
        if time.monotonic() > end:
            raise LabError(f"the lab's {name} does not answer: {processes.last_line(lab, name)}")
        time.sleep(0.05)


def _works(lab: Lab, name: str) -> bool:
    if name == "simulator":
        return lab.drawn_quirks.exists()
    return _answers(lab.network.gateway, PORTS[name])


def _answers(address: str, port: int) -> bool:
    connection = http.client.HTTPConnection(address, port, timeout=2)
    try:
        connection.request("GET", "/")
        connection.getresponse()
    except OSError:
        return False
    finally:
        connection.close()
    return True
