"""Long work on a node as a transient systemd unit: it outlives ssh sessions, a second run attaches to it.

A download of 176 GB takes hours; a task that holds one ssh channel that long loses it (M-20).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import progress
from .shell import CommandError, run

LOGS = Path("/run/twinserve/jobs")
_PROPERTIES = (
    "ActiveState", "SubState", "Result", "ExecMainStatus", "ExecMainPID", "ExecMainStartTimestamp",
    "Description",
)  # fmt: skip
# They work as root on caches, images and below /var/lib: what none of them has any use for is taken away.
HARDENED = (
    "NoNewPrivileges=yes", "ProtectSystem=full", "ProtectKernelTunables=yes", "ProtectKernelModules=yes",
    "ProtectKernelLogs=yes", "ProtectControlGroups=yes", "RestrictNamespaces=yes", "RestrictRealtime=yes",
    "LockPersonality=yes", "SystemCallArchitectures=native",
)  # fmt: skip


@dataclass(frozen=True)
class JobState:
    """`running`, `done`, `failed` or `absent`; `since` is systemd's own time text, `size` is in bytes.

    `what` tells works of one name apart, which must not run side by side (a repository's revisions).
    `progress` are the numbers that the job's own program notes (module `progress`), if it does.
    """

    status: str
    exit_code: int
    pid: int
    since: str
    size: int
    log: list[str]
    what: str = ""
    progress: dict[str, Any] | None = None


def unit_name(name: str) -> str:
    """A unit name that systemd takes, whatever the job is called."""
    return "twinserve-job-" + re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-").lower() + ".service"


def progress_path(name: str) -> Path:
    """Where the job's program notes how far it is."""
    return progress.FOLDER / f"{unit_name(name).removeprefix('twinserve-job-').removesuffix('.service')}.json"


def classify(shown: Mapping[str, str]) -> str:
    """Translate systemd's words: RemainAfterExit keeps a finished job active/exited until collected."""
    active, sub = shown.get("ActiveState", "inactive"), shown.get("SubState", "dead")
    if active in ("activating", "deactivating", "reloading") or (active == "active" and sub != "exited"):
        return "running"
    if active == "active":
        return "done"
    return "failed" if active == "failed" else "absent"


def read(name: str, watch: Sequence[str] = ()) -> JobState:
    """Where the job stands now."""
    unit = unit_name(name)
    text = run(["systemctl", "show", unit, "--property", ",".join(_PROPERTIES)])
    shown = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    log = LOGS / f"{unit}.log"
    lines = re.split(r"[\r\n]+", log.read_text(errors="replace")) if log.is_file() else []
    return JobState(
        status=classify(shown),
        exit_code=int(shown.get("ExecMainStatus") or 0),
        pid=int(shown.get("ExecMainPID") or 0),
        since=shown.get("ExecMainStartTimestamp", ""),
        size=sum(folder_size(Path(path)) for path in watch),
        log=[line for line in lines if line.strip()][-25:],
        what=shown.get("Description", ""),
        progress=progress.read(progress_path(name)),
    )


def meaning(state: JobState, meanings: Mapping[str, str]) -> str:
    """What the output of a job that failed is known to mean: `meanings` maps regular expressions to texts."""
    output = "\n".join(state.log) if state.status == "failed" else ""
    return next((text for pattern, text in meanings.items() if re.search(pattern, output)), "")


def start(
    name: str,
    argv: Sequence[str],
    *,
    what: str | None = None,
    user: str | None = None,
    env: Mapping[str, str] | None = None,
    env_file: str | None = None,
    properties: Sequence[str] = (),
) -> None:
    """Start the job; whatever an earlier one of that name left is cleared first.

    `env` is readable by every user of the node; what is secret goes into `env_file`, which systemd reads.
    `properties` are the unit's own, as systemd names them (`MemoryMax=6G`).
    """
    collect(name)
    unit = unit_name(name)
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{unit}.log"
    progress_path(name).unlink(missing_ok=True)
    # Emptied by systemd: another run may have begun the job a moment ago, and then this is its log.
    options = [f"--property={one}" for one in HARDENED]
    options += [f"--property=StandardOutput=truncate:{log}", "--property=StandardError=inherit"]
    options += [f"--description={what}"] if what else []
    told = {**(env or {}), progress.VARIABLE: str(progress_path(name))}
    options += [f"--setenv={key}={value}" for key, value in sorted(told.items())]
    options += [f"--property=EnvironmentFile={env_file}"] if env_file else []
    options += [f"--uid={user}"] if user else []
    options += [f"--property={one}" for one in properties]
    # systemd fills in variables of its own; what is meant for the program's shell has to pass it by.
    words = [word.replace("$", "$$") for word in argv]
    run(["systemd-run", "--quiet", f"--unit={unit}", "--property=RemainAfterExit=yes", "--property=Type=exec",
         *options, "--", *words])  # fmt: skip


def collect(name: str) -> None:
    """Forget a finished job, so that its name is free again."""
    verb = {"done": "stop", "failed": "reset-failed"}.get(read(name).status)
    if not verb:
        return
    try:
        run(["systemctl", verb, unit_name(name)])
    except CommandError:
        # Another run at the same time may have been quicker.
        if read(name).status != "absent":
            raise


def stop(name: str) -> None:
    """End a running job; systemd also ends what it started."""
    run(["systemctl", "stop", unit_name(name)], timeout=120)


def wait(name: str, seconds: float, watch: Sequence[str] = ()) -> JobState:
    """The state once the job has ended, or after `seconds`."""
    limit = time.monotonic() + seconds
    while read(name).status == "running" and time.monotonic() < limit:
        time.sleep(0.2)
    # Sizes only once: walking a store of images costs more than all the rest.
    return read(name, watch)


def folder_size(top: Path) -> int:
    """Bytes on disk below `top`, links not followed; files may vanish while we look."""
    total = 0
    for folder, _, names in os.walk(top):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512  # noqa: PTH118 (hot loop)
            except FileNotFoundError:
                continue
    return total
