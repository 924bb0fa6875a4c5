"""The head's key files: made, replaced and removed so that there is a usable pair at every moment.

A key that is being replaced has its successor beside it (`control.next`). An interruption anywhere leaves
what the next run can tell apart: `read` says which keys are whole.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .atomic_file import replace
from .shell import run
from .ssh_client import KEYS, KNOWN_HOSTS, NEXT

NAMES = ("control", "copy", "image")


class KeysChanged(RuntimeError):
    """The files are not what this run saw: another one is at work."""


def read(folder: Path = Path(KEYS)) -> dict[str, str | None]:
    """Type and public key of each key and its successor; "" when only half of a pair is there."""
    return {name: public_key(folder / name) for one in NAMES for name in (one, f"{one}{NEXT}")}


def public_key(path: Path) -> str | None:
    """Type and key of the pair at `path`, without the comment; None when neither half is there."""
    public = path.with_name(f"{path.name}.pub")
    halves = (path.is_file(), public.is_file())
    if all(halves):
        return " ".join(public.read_text(encoding="utf-8").split()[:2])
    return "" if any(halves) else None


def make(folder: Path, name: str) -> bool:
    """A new pair of files, unless a whole one is there; false when it is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(folder):
        if public_key(folder / name):
            return False
        comment = f"twinserve-{name.removesuffix(NEXT)}"
        with tempfile.TemporaryDirectory(dir=folder, prefix=".") as work:
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", f"{work}/key"])
            for half in ("", ".pub"):
                Path(work, f"key{half}").replace(folder / f"{name}{half}")
    return True


def promote(folder: Path, name: str, expected: str) -> bool:
    """Put the successor (public key `expected`) in the key's place; it stays where it is until `drop`."""
    with _alone(folder):
        successor = f"{name}{NEXT}"
        if (found := public_key(folder / successor)) != expected:
            raise KeysChanged(f"{folder / successor} is {found or 'gone'}, and {expected} was seen before")
        if public_key(folder / name) == expected:
            return False
        # The private half first: as long as the public one is the old one, this is done again.
        for half, mode in (("", 0o600), (".pub", 0o644)):
            replace(folder / f"{name}{half}", (folder / f"{successor}{half}").read_bytes(), mode)
    return True


def drop(folder: Path, name: str) -> bool:
    """Remove a successor that took its place, or half of one; one that waits for its turn is left alone."""
    with _alone(folder):
        successor = f"{name}{NEXT}"
        found = public_key(folder / successor)
        if found is None or (found and found != public_key(folder / name)):
            return False
        for half in ("", ".pub"):
            (folder / f"{successor}{half}").unlink(missing_ok=True)
    return True


def remove(folder: Path, known_hosts: Path = Path(KNOWN_HOSTS)) -> list[str]:
    """Take all keys and the known hosts away, and the folder around them when it is empty; what went."""
    gone = [str(path) for path in (folder, known_hosts) if path.exists()]
    if folder.is_dir():
        shutil.rmtree(folder)
    known_hosts.unlink(missing_ok=True)
    if known_hosts.parent.is_dir() and not any(known_hosts.parent.iterdir()):
        known_hosts.parent.rmdir()
    return gone


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder against another run at the same time."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        _sweep(folder)
        yield
    finally:
        os.close(handle)


def _sweep(folder: Path) -> None:
    """What a run that was killed left unfinished: nobody else works here while the folder is held."""
    for leftover in folder.glob(".*"):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()
