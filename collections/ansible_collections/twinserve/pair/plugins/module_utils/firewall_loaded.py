"""What there is of the firewall: in the kernel, as nft lists it, at the next boot, and beside it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from . import other_firewalls
from .firewall_rules import FILE, TABLE, UNIT, signature
from .shell import CommandError, run

_WANTED_BY = Path("/etc/systemd/system/sysinit.target.wants", Path(UNIT).name)
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def read() -> dict[str, Any]:
    """What is loaded, what will be at the next boot, and what other firewalls let in."""
    file = Path(FILE)
    return {
        "nft": shutil.which("nft") is not None,
        "table": read_table(),
        "written": signature(file.read_text()) if file.is_file() else [],
        "enabled": is_enabled(),
        "range": [int(word) for word in _RANGE.read_text().split()],
        **other_firewalls.read(),
    }


def is_enabled() -> bool:
    """Whether each boot loads what is written."""
    return _WANTED_BY.is_symlink()


def read_table() -> str:
    """The table as nft writes it; empty when it is not loaded."""
    if not shutil.which("nft"):
        return ""
    try:
        return run(["nft", "--stateless", "list", "table", *TABLE.split()])
    except CommandError as error:
        if "No such file or directory" in error.said:
            return ""
        raise


def is_intact(file: Path = Path(FILE)) -> bool | None:
    """Whether the rules that each boot loads are those that are loaded; None where a boot loads none."""
    if not file.is_file():
        return None
    return signature(read_table()) == signature(file.read_text(encoding="utf-8"))
