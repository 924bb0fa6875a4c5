"""The rank's systemd unit and its journal."""

from __future__ import annotations

from dataclasses import dataclass

from ..services import parse_show
from ..shell import run
from .paths import UNIT

_PROPERTIES = "ActiveState,ExecMainCode,ExecMainStatus,InvocationID,Result"
_CLD_EXITED = "1"
_SIGNAL_BASE = 128


@dataclass(frozen=True)
class Unit:
    """`active` is systemd's word; `exit_code` is None while it runs, and 128 + signal when it was killed."""

    active: str
    exit_code: int | None
    invocation: str


def parse(text: str) -> Unit:
    """Parse `systemctl show` of the unit."""
    shown = (parse_show(text) or [{}])[0]
    code, status = shown.get("ExecMainCode", "0"), int(shown.get("ExecMainStatus") or 0)
    active = shown.get("ActiveState", "inactive")
    exit_code = None
    if code not in ("0", "") and active not in ("active", "activating"):
        exit_code = status if code == _CLD_EXITED else _SIGNAL_BASE + status
    return Unit(active, exit_code, shown.get("InvocationID", ""))


def show() -> Unit:
    """Read the unit (CommandError: systemd does not answer)."""
    return parse(run(["systemctl", "show", UNIT, "--property", _PROPERTIES]))


def start() -> None:
    """Start it; returns when the program is executed, which says nothing of readiness."""
    run(["systemctl", "start", UNIT], timeout=240)


def stop(seconds: int) -> None:
    """Stop it and forget how it ended: a rank that had to be killed would show as failed for ever."""
    run(["systemctl", "stop", UNIT], timeout=seconds + 120)
    if show().active == "failed":
        run(["systemctl", "reset-failed", UNIT])


def journal_argv(lines: int, invocation: str = "", output: str = "cat") -> list[str]:
    """Return the command for the rank's own output; with an invocation, of that start only."""
    argv = [
        "journalctl",
        "--no-pager",
        "--quiet",
        "--output",
        output,
        "--lines",
        str(lines),
        f"_SYSTEMD_UNIT={UNIT}",
    ]
    return [*argv, f"_SYSTEMD_INVOCATION_ID={invocation}"] if invocation else argv


def journal(lines: int, invocation: str = "") -> str:
    """Return the last lines that the rank printed."""
    return run(journal_argv(lines, invocation))
