"""Everything about a node that helps to find out what went wrong, in one archive without secrets.

Each part is read on its own: one that cannot be read says why in its own file, and the others are there.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .agent import paths
from .agent.unit import journal_argv
from .redact import redact
from .shell import CommandError, run

RUN = Path("/run/twinserve")
ETC = Path("/etc/twinserve")
# Of each journal its end; a start has some thousand lines.
LINES = 20_000
TAIL = 25
# Of one file, so that a server's log of months does not fill the controller.
_LARGEST = 50_000_000
_SLOW = 60.0
# Why a part cannot be read; a torn archive is a ValueError, an OSError or an EOFError.
UNREADABLE = (CommandError, OSError, ValueError, EOFError)
_KERNEL = ("journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-iso", "-n", "5000")
_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "system/uname.txt": ("uname", "-a"),
    "system/disks.txt": ("df", "-h"),
    "system/memory.txt": ("cat", "/proc/meminfo"),
    "system/addresses.txt": ("ip", "-d", "addr"),
    "system/routes.txt": ("ip", "route", "show", "table", "all"),
    "system/gpu.txt": ("nvidia-smi", "-q"),
    "system/docker.txt": ("docker", "info"),
    "system/containers.txt": ("docker", "ps", "--all", "--no-trunc"),
    "system/units.txt": ("systemctl", "status", "--no-pager", "--full", "twinserve*"),
}


@dataclass(frozen=True)
class Part:
    """One file of the archive, and how it is read."""

    name: str
    read: Callable[[], str]
    packed: bool = False


def parts(facts: Callable[[], Mapping[str, Any]]) -> list[Part]:
    """What there is on this node now; `facts` looks at it as the playbooks do."""
    return [
        Part("rank.log", _program([*journal_argv(LINES, output="short-iso-precise"), "--no-hostname"])),
        Part("supervisor.log", _program(_supervisor_argv())),
        *(Part(f"starts/{path.name}", _unpacked(path), packed=True) for path in kept()),
        *(Part(f"state/{path.name}", path.read_text) for path in _documents()),
        *(Part(f"jobs/{path.name}", path.read_text) for path in sorted((RUN / "jobs").glob("*.log"))),
        Part("state/facts.json", lambda: json.dumps(facts(), indent=1, sort_keys=True, default=str)),
        Part("system/kernel.log", _program(_KERNEL)),
        *(Part(name, _answer(argv)) for name, argv in _COMMANDS.items()),
    ]


def kept(folder: Path | None = None) -> list[Path]:
    """The logs of starts that ended, oldest first."""
    return sorted((folder or paths.LOGS).glob("*-rank*.log.gz"), key=lambda path: path.stat().st_mtime_ns)


def tail(secrets: Iterable[str] = ()) -> list[str]:
    """The last lines that the rank printed, of whatever start; why there are none when that fails."""
    text = _read(_program(journal_argv(TAIL)))
    return [line for line in redact(text, secrets).splitlines() if line.strip()]


def secrets_here(hf_home: str | None) -> list[str]:
    """Secrets of this node by value: what logged its user in at the hub."""
    files = [Path(hf_home, name) for name in ("token", "stored_tokens")] if hf_home else []
    words = [word for path in files if path.is_file() for word in path.read_text(errors="replace").split()]
    return [word for word in words if len(word) > 15]


def write(path: Path, folder: str, found: Iterable[Part], secrets: Iterable[str]) -> list[dict[str, Any]]:
    """Write the archive, all below one folder; returns name and bytes of each file."""
    known, listed = list(secrets), []
    with tarfile.open(path, "w:gz", compresslevel=6) as archive:
        for part in found:
            content = redact(_read(part.read)[-_LARGEST:], known).encode()
            data = gzip.compress(content) if part.packed else content
            entry = tarfile.TarInfo(f"{folder}/{part.name}")
            entry.size, entry.mode, entry.mtime = len(data), 0o600, int(time.time())
            archive.addfile(entry, io.BytesIO(data))
            listed.append({"name": part.name, "bytes": len(content)})
    return listed


def _read(read: Callable[[], str]) -> str:
    try:
        return read()
    except UNREADABLE as error:
        return f"cannot be read: {error}\n"


def _program(argv: Iterable[str]) -> Callable[[], str]:
    return lambda: run(list(argv), timeout=_SLOW)


def _answer(argv: Iterable[str]) -> Callable[[], str]:
    return lambda: _printed(list(argv))


def _printed(argv: list[str]) -> str:
    try:
        return run(argv, timeout=_SLOW)
    except CommandError as error:
        # systemctl says with its exit code that a unit does not run: what it printed is what is wanted.
        if error.said:
            return error.said
        raise


def _supervisor_argv() -> list[str]:
    argv = ["journalctl", "--no-pager", "--quiet", "--output", "short-iso", "--lines", str(LINES)]
    return [*argv, "_SYSTEMD_UNIT=twinserve.service"]


def _unpacked(path: Path) -> Callable[[], str]:
    return lambda: gzip.decompress(path.read_bytes()).decode(errors="replace")


def _documents() -> Iterator[Path]:
    """What was configured and what is known; never the keys."""
    for path in (ETC / "rank.json", ETC / "pair.json", RUN / "state.json", RUN / "link.json"):
        if path.is_file():
            yield path
    yield from sorted((RUN / "progress").glob("*.json"))
