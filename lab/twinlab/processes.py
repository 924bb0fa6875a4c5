"""The lab's own processes on the controller: started apart from the shell, found by pid and start time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from . import cgroups
from .layout import PACKAGE, Lab


def start_time(pid: int) -> str | None:
    """Clock ticks since boot at which a process began, as text; None when there is no such process.

    With it a pid that another process got later is not taken for ours.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def write_pid(file: Path, pid: int) -> None:
    """Remember a process."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{pid} {start_time(pid)}\n")


def read_pid(file: Path) -> int | None:
    """The pid in a file while that process lives, else None."""
    try:
        pid, began = file.read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    return int(pid) if start_time(int(pid)) == began else None


def python(module: str, *arguments: str) -> list[str]:
    """The command line of one of our own modules, e.g. `services.apt_mirror`."""
    return [sys.executable, "-B", "-m", f"twinlab.{module}", *arguments]


def spawn(lab: Lab, name: str, argv: Sequence[str], cgroup: str | None = None) -> int:
    """Start a process that outlives us; its output goes to logs/NAME.log, its pid to pids/NAME."""
    group = cgroup or lab.services_cgroup
    cgroups.create(group)
    lab.logs.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "TWINSERVE_LAB": str(lab.root)}
    with (lab.logs / f"{name}.log").open("ab") as log:
        child = subprocess.Popen(
            list(argv),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=environment,
        )
    cgroups.add(group, child.pid)
    write_pid(lab.pids / name, child.pid)
    return child.pid


def alive(lab: Lab, name: str) -> bool:
    """Whether the process of that name runs."""
    return read_pid(lab.pids / name) is not None


def stop(lab: Lab, name: str, timeout: float = 5.0) -> None:
    """End a process: SIGTERM, then SIGKILL; nothing to do when it is gone."""
    file = lab.pids / name
    end = time.monotonic() + timeout
    number = signal.SIGTERM
    while (pid := read_pid(file)) is not None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            break
        if time.monotonic() > end:
            number = signal.SIGKILL
        _reap(pid)
        time.sleep(0.05)
    file.unlink(missing_ok=True)


def _reap(pid: int) -> None:
    """Collect a child of ours that ended, so that it does not look alive."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def last_line(lab: Lab, name: str) -> str:
    """The last line that a process logged, for messages."""
    try:
        lines = (lab.logs / f"{name}.log").read_text(errors="replace").strip().splitlines()
    except FileNotFoundError:
        lines = []
    return lines[-1] if lines else "it said nothing"
