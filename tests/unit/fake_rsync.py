#!/usr/bin/env python3
"""An rsync that pushes between two folders, as far as a copy uses it; $WORKER is the worker's cache.

A file `dead-ADDRESS` beside it makes that rail fail; `cut-ADDRESS` breaks it in the middle of the next file;
`late-ADDRESS` lets the worker tire of the next call that sends no content; `full-ADDRESS` fills its disk, and
`mute-ADDRESS` loses what it says of that, once.
Each call is noted in `calls`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

WORKER = Path(os.environ["WORKER"])
RELATIVE = "RELATIVE" in os.environ
LOST = "ssh: connect to host {} port 22: No route to host"


def broken(address: str) -> int:
    print(LOST.format(address), file=sys.stderr)
    print("rsync error: unexplained error (code 255) at io.c(285) [sender=3.5.0]", file=sys.stderr)
    return 255


def item(source: Path, target: Path, name: str) -> str:
    if source.is_symlink():
        return "" if target.is_symlink() else f"cL+++++++++ {name} -> {source.readlink()}"
    if not target.exists():
        return f"<f+++++++++ {name}"
    return "" if target.stat().st_size == source.stat().st_size else f"<f.s....... {name}"


def push(source: Path, target: Path, partial: str, address: str) -> bool:
    """Whether all of the file came over."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.unlink(missing_ok=True)
        target.symlink_to(source.readlink())
        return True
    # Some rrsync take the folder for one beside each file.
    beside = target.parent / partial.strip("/")
    data, growing = source.read_bytes(), (beside if RELATIVE else Path(f"{WORKER}{partial}")) / source.name
    if not growing.exists():
        growing = target.with_name(f".{target.name}.Zuf4Ll")
    had = growing.stat().st_size if growing.exists() else 0
    cut = WORKER.parent / f"cut-{address}"
    if cut.exists():
        cut.rename(WORKER.parent / f"dead-{address}")
        growing.write_bytes(data[: len(data) // 2])
        return False
    growing.write_bytes(data)
    growing.rename(target)
    with (WORKER.parent / "bytes").open("a") as log:
        log.write(f"{len(data) - had} {source.name}\n")
    return True


def main(argv: list[str]) -> int:
    source, target = Path(argv[-2]), argv[-1]
    address, _, inside = target.partition("@")[2].partition(":")
    with (WORKER.parent / "calls").open("a") as log:
        kind = "look" if "--dry-run" in argv else "send"
        log.write(f"{'room' if '--ignore-existing' in argv else kind} {address}\n")
    if (WORKER.parent / f"dead-{address}").exists():
        return broken(address)
    if "--ignore-existing" in argv:
        for one in (path.relative_to(source) for path in source.rglob("*") if path.is_file()):
            (WORKER / inside / one).parent.mkdir(parents=True, exist_ok=True)
            (WORKER / inside / one).touch()
        return 0
    late = WORKER.parent / f"late-{address}"
    if late.exists() and not any(word.startswith(("--partial-dir", "--dry-run")) for word in argv):
        late.unlink()
        print("rsync error: timeout in data send/receive (code 30) at io.c(205)", file=sys.stderr)
        return 30
    if (WORKER.parent / f"full-{address}").exists() and "--dry-run" not in argv:
        mute = WORKER.parent / f"mute-{address}"
        if mute.exists():
            mute.unlink()
        else:
            print('rsync: [receiver] write failed on "x": No space left on device (28)', file=sys.stderr)
        return 11
    (given,) = [word for word in argv if word.startswith("--partial-dir=")] or ["--partial-dir=/none"]
    moved = 0
    for name in filter(None, sys.stdin.read().split("\0")):
        here, there = source / name, WORKER / inside / name
        if not (line := item(here, there, name)):
            continue
        if "--dry-run" in argv:
            print(line)
            continue
        if not push(here, there, given.partition("=")[2], address):
            return broken(address)
        moved += here.stat().st_size
        print(f"\r{moved:>15}  50%    1.00MB/s    0:00:01", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
