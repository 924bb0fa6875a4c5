"""Who has a lab: one machine-wide record and lock for each name, and which network each one took."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TextIO

from . import cgroups, network, subnets
from .errors import LabError, Refusal
from .layout import Lab

RECORDS = Path("/run/twinserve-lab")


def remembered_network(root: Path, name: str) -> subnets.Network:
    """The network that the lab had at its last `up`.  Raises LabError when it never was up."""
    try:
        return subnets.Network(int((root / name / "block").read_text()))
    except FileNotFoundError:
        raise LabError(f"there is no lab {name} in {root}: run `lab up --name {name}`") from None


def _record(name: str) -> Path:
    return RECORDS / f"{name}.json"


def _read(file: Path) -> dict[str, str | int] | None:
    try:
        content: dict[str, str | int] = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return content


def owner(name: str) -> str | None:
    """The folder that holds the lab of this name that is up, or None."""
    record = _read(_record(name))
    return None if record is None else str(record["root"])


def claim(root: Path, name: str) -> Lab:
    """Take a name and a free network for it, and remember both.

    Raises Refusal when a lab of that name is up from another folder.
    """
    held = owner(name)
    if held not in (None, str(root)) and cgroups.pids(f"twinlab/{name}"):
        raise Refusal(f"a lab named {name} is up from {held}: `lab down` there, or use --name")
    block_file = root / name / "block"
    remembered = int(block_file.read_text()) if block_file.exists() else None
    with waiting_for("the networks"):
        taken = {
            int(record["block"])
            for file in RECORDS.glob("*.json")
            if file != _record(name) and (record := _read(file)) is not None
        }
        if held is None:
            taken |= subnets.blocks_in_use(network.addresses_of_this_machine())
        chosen = subnets.choose(name, taken, remembered)
        block_file.parent.mkdir(parents=True, exist_ok=True)
        block_file.write_text(f"{chosen.block}\n")
        _record(name).write_text(json.dumps({"root": str(root), "block": chosen.block}) + "\n")
    return Lab(name, root, chosen)


def release(lab: Lab) -> None:
    """Give the name back."""
    _record(lab.name).unlink(missing_ok=True)


@contextmanager
def locked(name: str, verb: str) -> Iterator[None]:
    """Hold the lab of that name for one verb.  Raises Refusal naming the holder when another has it."""
    with _lock_file(name) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal(f"lab {name} is busy: {stream.read().strip()}") from None
        stream.truncate(0)
        stream.write(f"`lab {verb}` since {datetime.now():%H:%M:%S}, pid {os.getpid()}\n")
        stream.flush()
        yield
        stream.truncate(0)


@contextmanager
def waiting_for(what: str) -> Iterator[None]:
    """Hold what all labs share, after whoever has it now."""
    with _lock_file(f".{what.replace(' ', '-')}") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _lock_file(name: str) -> TextIO:
    """Open a lock's file; closing it gives the lock back, however we end."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    stream = (RECORDS / f"{name}.lock").open("a+")
    stream.seek(0)
    return stream
