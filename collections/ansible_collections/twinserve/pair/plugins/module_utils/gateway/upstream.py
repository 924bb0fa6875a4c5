"""Where the gateway finds the engine, and whether it has to be there: as the pair's configuration says."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..atomic_file import replace
from ..managed_files import ETC, UNITS
from ..services import GATEWAY, is_active, parse_show, read_journal
from ..shell import CommandError, run
from .keys import FOLDER

UPSTREAM = FOLDER / "upstream.conf"


def upstream_conf(api: Mapping[str, Any]) -> str:
    """The server of nginx' upstream, from `api` of the pair's configuration."""
    host = f"[{api['host']}]" if ":" in api["host"] else api["host"]
    return f"server {host}:{api['port']};\n"


def follow(root: Path = Path("/")) -> None:
    """Bring the gateway, where one is installed, in line with the configuration that is about to start.

    Engine and gateway share a port, one at a time: a gateway that the configuration does not want goes before
    the engine takes its port.
    """
    config, unit = (root / path.lstrip("/") for path in (f"{ETC}/pair.json", f"{UNITS}/{GATEWAY}"))
    if not unit.is_file() or not config.is_file():
        return
    api = json.loads(config.read_text())["api"]
    active = is_active(parse_show(run(["systemctl", "show", GATEWAY, "--property", "ActiveState"]))[0])
    if not api.get("gateway"):
        if active:
            _at_boot("disable")
            run(["systemctl", "stop", GATEWAY])
        return
    path, text = root / str(UPSTREAM).lstrip("/"), upstream_conf(api)
    moved = not path.is_file() or path.read_text() != text
    if moved:
        replace(path, text.encode(), 0o644)
    if active and moved:
        run(["systemctl", "reload", GATEWAY])
    elif not active:
        _at_boot("enable")
        try:
            run(["systemctl", "start", GATEWAY])
        except CommandError as error:
            said = " ".join(read_journal(GATEWAY, 3))
            raise CommandError(f"{GATEWAY} does not start: {said or error}") from error


def _at_boot(verb: str) -> None:
    """Without systemd, which would read all units anew: that takes the GPU from a container."""
    run(["systemctl", "--quiet", verb, GATEWAY], env={**os.environ, "SYSTEMD_OFFLINE": "1"})
