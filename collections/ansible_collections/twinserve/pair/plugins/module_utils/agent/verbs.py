"""What the agent can be asked. Each verb returns something for JSON, or raises AgentError or CommandError."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .. import gpu_holders, gpu_process, lost_device, low_memory
from ..docker_argv import LinkError, docker_argv
from ..kernel_files import read_attr
from ..listeners import read_listeners, taken
from ..meminfo import Memory, read_memory
from ..reach import Target, reach
from ..shell import CommandError
from ..shell import run as program
from ..sysfs import read_devices
from . import caches, cgroup, clocks, container, gpu, kept_logs, paths, unit, weights
from .check import dark_ports, rail_problems
from .errors import AgentError
from .plan import parse_link, read_link, read_plan, write_atomically

_DOCKER_BACK = 60.0
_CONTAINER_UP = 120.0
_POLL = 0.1
_RUNS = ("active", "activating")
# The setting's own default: the plan of a release before it does not say.
_LOG_KEEP = 10
# GiB: a pair that was deployed with just enough comes back although other programs have grown a little since.
_SLACK = 4.0
# What systemd tells no program of a unit but those after it: before a start nothing has been printed by it.
_AFTER = "SERVICE_RESULT"


def report(root: Path = Path("/")) -> dict[str, Any]:
    """Everything the supervisor must know before a start. A node without a plan is not an error yet."""
    try:
        plan: dict[str, Any] | None = read_plan()
    except AgentError:
        plan = None
    found = container.inspect(plan["container"]) if plan else None
    devices = read_devices(root)
    memory = read_memory(root)
    gone = lost_device.gone((plan or {}).get("expected_link") or [], [device.hca for device in devices])
    return {
        "version": paths.VERSION,
        "hostname": platform.node(),
        "boot_id": read_attr(root / "proc/sys/kernel/random/boot_id"),
        "devices": [device.as_dict() for device in devices],
        "pcie_error": lost_device.read_error() if gone else None,
        "memory": memory.as_dict(),
        "plan": plan and {name: plan.get(name) for name in ("digest", "image", "container", "expected_link")},
        "container": found,
        "link": _link(),
        # A rank of ours has its ports and its memory rightly.
        "hindrances": [*_taken(plan), *_short(plan, memory)] if plan and not found else [],
    }


def start(text: str) -> dict[str, Any]:
    """Prove the rails, keep the link, start the unit, and return the container once it exists."""
    link, plan = parse_link(text), read_plan()
    try:
        docker_argv(plan, link)
    except LinkError as error:
        raise AgentError(str(error)) from error
    if problems := rail_problems(link["rails"], read_devices()):
        raise AgentError("; ".join(problems))
    weights.mount(plan)
    _wait_for_docker()
    if unit.show().active == "active":
        raise AgentError("this rank is already running: stop it first")
    if problems := _taken(plan):
        raise AgentError("; ".join(problems))
    write_atomically(paths.LINK, link)
    unit.start()
    return _wait_for_container(plan["container"])


def stop() -> dict[str, Any]:
    """Stop the unit, and remove a container that outlived it."""
    plan = read_plan()
    unit.stop(int(plan["stop_timeout"]))
    if container.answers() and container.inspect(plan["container"]) is not None:
        container.remove(plan["container"])
    return {"stopped": True}


def kill() -> dict[str, Any]:
    """Stop without the time that a serving rank gets: one that is loading would not hear SIGTERM anyway."""
    container.kill(read_plan()["container"])
    return stop()


def state(root: Path = Path("/"), loading: bool = False) -> dict[str, Any]:
    """Return what the supervisor polls. Docker's silence is an error only while the unit claims to run.

    `loading`: weights are on their way into memory, which is then guarded, if that is wanted, and watched.
    """
    plan = read_plan()
    unguarded = caches.guard(read_memory(root)) if loading and plan.get("load_guard") else []
    with ThreadPoolExecutor(max_workers=5) as pool:
        used = pool.submit(gpu.used_gib)
        read = pool.submit(clocks.problems, plan.get("clock"))
        worker = pool.submit(gpu_process.problems, None if loading else plan.get("gpu_process"))
        inspected = pool.submit(container.inspect, plan["container"])
        shown = unit.show()
        log = unit.journal(20, shown.invocation)
        try:
            found = inspected.result()
        except AgentError:
            if shown.active == "active":
                raise
            found = None
    gpu_gib = used.result()
    told = [*read.result(), *worker.result()] if shown.active == "active" else []
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return {
        "unit": shown.active,
        "container": found,
        "exit_code": shown.exit_code,
        "gpu_gib": gpu_gib,
        "memory_gib": cgroup.used_gib(found["pid"]) if found and gpu_gib is None else None,
        "starved": caches.starved(paths.LINK.stat().st_mtime) if loading and _link() else None,
        "warnings": [*told, *unguarded],
        "dark": dark_ports((_link() or {"rails": []})["rails"], root),
        "log": lines,
        # For a supervisor of the release before, which asks this agent while the pair is being upgraded.
        "log_line": lines[-1] if lines else None,
    }


def logs(lines: int) -> str:
    """Return the last lines of the latest start, or of the journal when that start is forgotten.

    A rank that runs and has said nothing yet is not judged by what an earlier start said.
    """
    shown = unit.show()
    said = unit.journal(lines, shown.invocation)
    return said if said or shown.active in _RUNS else unit.journal(lines)


def reach_all(targets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send full-size packets, bound to the ports."""
    wanted = [
        Target(one["netdev"], one["target"], int(one["mtu"]), one["arp_from"], one["mac"]) for one in targets
    ]
    return [result.as_dict() for result in reach(wanted)]


def run() -> None:
    """Become the attached `docker run` of this rank. Only for the unit; returns only by an error."""
    plan, link = read_plan(), read_link()
    try:
        argv = docker_argv(plan, link)
    except LinkError as error:
        raise AgentError(str(error)) from error
    caches.drop()
    for command in plan.get("before", []):
        program(command)
    os.execvp(argv[0], argv)


def unit_stop() -> None:
    """Stop the container as the plan says. Only for the unit, whose own text never changes."""
    plan = read_plan()
    container.stop(plan["container"], int(plan["stop_timeout"]))


def unit_guard() -> None:
    """Make room for the driver while weights are loaded. Only for the unit that `state` starts for it."""
    caches.relieve()


def unit_clean() -> None:
    """Keep the log, remove what a crash left behind, undo what `run` did. Only for the unit."""
    plan = read_plan()
    if _AFTER in os.environ:
        _keep_log(plan)
    container.remove(plan["container"])
    for command in plan.get("after", []):
        program(command)


def _keep_log(plan: Mapping[str, Any]) -> None:
    """Save what this start printed; a full disk must not keep a rank from being cleared away."""
    try:
        kept_logs.save(plan["rank"], plan.get("log_keep", _LOG_KEEP), os.environ["INVOCATION_ID"])
    except (OSError, AgentError, CommandError, KeyError) as error:
        print(f"the log of this start is not kept: {error}", file=sys.stderr)


def _link() -> dict[str, Any] | None:
    """What the rank was told at its latest start; None when there was none since the node came up."""
    try:
        return read_link()
    except AgentError:
        return None


def _taken(plan: Mapping[str, Any]) -> list[str]:
    return taken(plan.get("ports") or [], read_listeners())


def _short(plan: Mapping[str, Any], memory: Memory) -> list[str]:
    """Say that there is too little memory to start, and who has it."""
    needed = plan.get("needed_gib")
    if needed is None or memory.available_gib >= needed - _SLACK:
        return []
    try:
        holders = gpu_holders.read_holders()
    except CommandError as error:
        holders = [f"somebody unknown ({error})"]
    return [str(low_memory.shortage(memory.available_gib, needed, holders))]


def _wait_for_docker() -> None:
    deadline = time.monotonic() + _DOCKER_BACK
    while not container.answers():
        if time.monotonic() > deadline:
            raise AgentError(f"docker did not answer for {_DOCKER_BACK:.0f} s: systemctl status docker")
        time.sleep(1)


def _wait_for_container(name: str) -> dict[str, Any]:
    deadline = time.monotonic() + _CONTAINER_UP
    while time.monotonic() < deadline:
        shown = unit.show()
        found = _look(name)
        if found and found["running"]:
            return found
        if shown.active not in _RUNS:
            lines = [line for line in unit.journal(20, shown.invocation).splitlines() if line.strip()]
            raise AgentError(
                f"the container ended at once (code {shown.exit_code}): {lines[-1] if lines else 'no output'}"
            )
        time.sleep(_POLL)
    raise AgentError(f"no container {name} after {_CONTAINER_UP:.0f} s: journalctl -u {paths.UNIT}")


def _look(name: str) -> dict[str, Any] | None:
    try:
        return container.inspect(name)
    except (AgentError, CommandError):
        return None
