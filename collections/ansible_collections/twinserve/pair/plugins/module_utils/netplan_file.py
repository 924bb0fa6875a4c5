"""Netplan's files, and our one among them: read, written whole or not at all, and which ports it names."""

from __future__ import annotations

import re
from pathlib import Path

FILE = Path("/etc/netplan/60-twinserve-fabric.yaml")
# Of two files of one name netplan takes that of the later folder.
FOLDERS = (Path("/lib/netplan"), Path("/etc/netplan"), Path("/run/netplan"))
# Netplan's own program that makes the services' files. `netplan generate` calls it, and then has systemd
# reload its units, whatever root folder it was given: that takes the GPU from running containers, and makes
# the files of /etc anew.
GENERATORS = (Path("/usr/libexec/netplan/generate"), Path("/lib/netplan/generate"))


def read() -> str | None:
    """Its content; None when there is no such file."""
    return FILE.read_text() if FILE.is_file() else None


def sources() -> dict[Path, str]:
    """All netplan files that count, in the order in which netplan merges: by name, whatever the folder."""
    files = {path.name: path for folder in FOLDERS for path in folder.glob("*.yaml")}
    return {path: path.read_text() for _, path in sorted(files.items())}


def generate_argv() -> list[str]:
    """The call that makes the services' files of all netplan files."""
    return next(([str(path)] for path in GENERATORS if path.is_file()), ["netplan", "generate"])


def is_private() -> bool:
    """Whether only root may read it: netplan complains about any other mode."""
    return FILE.stat().st_mode & 0o777 == 0o600


def write(content: str | None) -> None:
    """Put `content` in its place in one step, mode 0600; None removes the file."""
    if content is None:
        FILE.unlink(missing_ok=True)
        return
    staged = FILE.with_suffix(".new")  # netplan reads *.yaml only
    staged.touch(mode=0o600)
    staged.chmod(0o600)
    staged.write_text(content)
    staged.rename(FILE)


def ports_of(content: str | None) -> set[str]:
    """The ports that a file in our own form names."""
    return set(re.findall(r"^ {4}(\S+):$", content or "", re.MULTILINE))
