"""Runs on a machine, as root: where on it each of some secrets can be found. Standard library only.

`secret_search.py at_rest MARK...` says where they are now, `watch FILE MARK...` where they were seen in
command lines, and in files of ours that hold one for a while, until FILE is there. Marks are given in
reverse, so that the search does not find itself. One line a place: the mark, a tab, the place.
"""

import gzip
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOTS = [
    *("/etc", "/run", "/home", "/root", "/tmp", "/var/tmp", "/var/lib/twinserve", "/var/log"),
    *("/usr/local", "/opt", "/dev/shm"),
]
SAID = (
    "journalctl --no-pager --all --output=export",
    "systemctl show '*'",
    "docker inspect $(docker ps --all --quiet)",
    "docker info",
    "docker events --since 0 --until 1s",
    "docker logs glm53-flash-tf",
)
TRANSIENT = "/run"
# Of one file: a model's weights are no place to look.
LARGEST = 64 << 20


def contents() -> Iterator[tuple[str, bytes]]:
    """Every place of a machine at which a secret could lie, and what is there."""
    for root in ROOTS:
        for folder, _, names in os.walk(root):
            for name in names:
                path = Path(folder, name)
                yield str(path), read(path)
    for process in Path("/proc").glob("[0-9]*"):
        # Who looks is given the marks, and so is its shell.
        if int(process.name) not in (os.getpid(), os.getppid()):
            name = read(process / "comm").decode(errors="replace").strip()
            for part in ("cmdline", "environ"):
                yield f"{part} of {name}", read(process / part)
    for command in SAID:
        done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
        yield command, done.stdout + done.stderr


def read(path: Path) -> bytes:
    """What is in a file, unpacked; nothing of one that is none, too large or gone."""
    try:
        if path.parts[1] != "proc" and (
            path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST
        ):
            return b""
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError):
        return b""


def watched(marks: list[str], end: Path) -> set[str]:
    """What was seen until `end` was there."""
    seen = set()
    while not end.exists():
        for process in Path("/proc").glob("[0-9]*"):
            seen |= {f"{mark}\tcommand lines" for mark in marks if mark.encode() in read(process / "cmdline")}
        for path in Path(TRANSIENT).glob("twinserve.*"):
            readable, data = mode(path), read(path)
            seen |= {f"{mark}\t{path} {readable}" for mark in marks if mark.encode() in data}
        time.sleep(0.3)
    return seen


def mode(path: Path) -> str:
    """Who may read it."""
    try:
        return f"{path.stat().st_mode & 0o777:04o}"
    except FileNotFoundError:  # the job has ended
        return "gone"


def main(verb: str, *words: str) -> None:
    """Print the places."""
    if verb == "watch":
        marks = [word[::-1] for word in words[1:]]
        found = watched(marks, Path(words[0]))
    else:
        marks = [word[::-1] for word in words]
        found = {f"{mark}\t{place}" for place, data in contents() for mark in marks if mark.encode() in data}
    print("\n".join(sorted(found)))


if __name__ == "__main__":
    main(*sys.argv[1:])
