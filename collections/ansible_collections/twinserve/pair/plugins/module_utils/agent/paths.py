"""Where things are on a node."""

from __future__ import annotations

from pathlib import Path

PLAN = Path("/etc/twinserve/rank.json")
LINK = Path("/run/twinserve/link.json")
LOGS = Path("/var/log/twinserve")
UNIT = "twinserve-rank.service"
GUARD = "twinserve-guard.service"
PROGRAM = "/usr/local/sbin/twinserve-rank"

# The runtime is unpacked to .../<version>/twinserve/, so the folder says which one this is.
VERSION = Path(__file__).resolve().parents[2].name
VM = Path("/proc/sys/vm")
