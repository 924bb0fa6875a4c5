"""Lines of ours in a user's `authorized_keys`: exactly those that are wanted, all else byte for byte.

Ours are the lines whose comment is one of our marks. What was there before the first of them is
noted in a record on the node, so that taking them away leaves no trace: no file where there was none, no
final newline where there was none. A file that its user changed meanwhile keeps his changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import atomic_file

RECORD = Path("/var/lib/twinserve/trust/authorized.json")


@dataclass(frozen=True)
class Change:
    """What a file holds (None: there is no file) and what it shall hold."""

    before: bytes | None
    after: bytes | None

    @property
    def needed(self) -> bool:
        """Whether anything is to be done."""
        return self.before != self.after


def our_lines(content: bytes, *marks: str) -> list[str]:
    """Those lines that bear one of the marks as their comment."""
    lines = (_text(line) for line in _split(content))
    return [line for line in lines if _is_ours(line, marks)]


def merged(content: bytes, marks: Sequence[str], wanted: Sequence[str]) -> bytes:
    """`content` with exactly the lines `wanted` of ours: those that are there stay where they are."""
    kept, missing = [], list(wanted)
    for line in _split(content):
        if _is_ours(text := _text(line), marks):
            if text not in missing:
                continue
            missing.remove(text)
        kept.append(line)
    if kept and missing and not kept[-1].endswith(b"\n"):
        kept[-1] += b"\n"
    return b"".join(kept) + b"".join(f"{line}\n".encode() for line in missing)


def restored(content: bytes, marks: Sequence[str], before: Mapping[str, Any] | None) -> bytes | None:
    """`content` without ours, as it was before us when that is what is left; None: there was no file."""
    rest = merged(content, marks, [])
    if before is None:
        return rest
    if not before["existed"]:
        return rest or None
    ends = (rest, rest.removesuffix(b"\n"))
    return next((end for end in ends if _digest(end) == before["sha256"]), rest)


def plan(path: Path, marks: Sequence[str], wanted: Sequence[str], record: Path = RECORD) -> Change:
    """What is to be done to the file; no lines wanted is the way back."""
    before = path.read_bytes() if path.is_file() else None
    if wanted:
        return Change(before, merged(before or b"", marks, wanted))
    if before is None:
        return Change(None, None)
    return Change(before, restored(before, marks, read_record(record).get(str(path))))


def apply(
    path: Path, owner: str, marks: Sequence[str], wanted: Sequence[str], record: Path = RECORD
) -> Change:
    """Do it, after noting what was there; a record that is no longer needed goes."""
    change = plan(path, marks, wanted, record)
    if wanted and not our_lines(change.before or b"", *marks):
        _note(path, change.before, record)
    if change.needed:
        _write(path, change.after, pwd.getpwnam(owner))
    if not wanted:
        _forget(path, record)
    return change


def read_record(record: Path = RECORD) -> dict[str, dict[str, Any]]:
    """What was there before us, by path of the file."""
    found: dict[str, dict[str, Any]] = json.loads(record.read_text()) if record.is_file() else {}
    return found


def _note(path: Path, content: bytes | None, record: Path) -> None:
    notes = read_record(record)
    made = not path.parent.exists() or notes.get(str(path), {}).get("made_folder", False)
    note = {"existed": content is not None, "sha256": _digest(content or b""), "made_folder": made}
    record.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    _replace(record, f"{json.dumps({**notes, str(path): note}, indent=1)}\n".encode(), 0o600)


def _forget(path: Path, record: Path) -> None:
    """Remove the note of a file, and the folder and the record itself when they are of no more use."""
    notes = read_record(record)
    note = notes.pop(str(path), None)
    if note and note["made_folder"]:
        _remove_if_empty(path.parent)
    if notes:
        _replace(record, f"{json.dumps(notes, indent=1)}\n".encode(), 0o600)
        return
    record.unlink(missing_ok=True)
    _remove_if_empty(record.parent)


def _write(path: Path, content: bytes | None, owner: pwd.struct_passwd) -> None:
    # A link may lead to where its user keeps such files: it stays a link.
    path = Path(os.path.realpath(path))
    if content is None:
        path.unlink(missing_ok=True)
        return
    if not path.parent.exists():
        path.parent.mkdir(mode=0o700)
        os.chown(path.parent, owner.pw_uid, owner.pw_gid)
    _replace(path, content, 0o600, (owner.pw_uid, owner.pw_gid))


def _replace(path: Path, content: bytes, mode: int, owner: tuple[int, int] = (-1, -1)) -> None:
    """Write a file at once; one that was there keeps its mode and owner."""
    if path.exists():
        there = path.stat()
        mode, owner = there.st_mode & 0o7777, (there.st_uid, there.st_gid)
    atomic_file.replace(path, content, mode, owner)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _is_ours(line: str, marks: Sequence[str]) -> bool:
    return not line.lstrip().startswith("#") and line.endswith(tuple(f" {mark}" for mark in marks))


def _split(content: bytes) -> list[bytes]:
    """Lines with their ends, as sshd reads them: only a newline ends one."""
    return re.findall(rb"[^\n]*\n|[^\n]+", content)


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r\n")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
