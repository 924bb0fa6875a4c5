"""Trees captured from machines with real RoCE devices (trees/*.txt), laid out as a sysfs below a folder.

`PATH=TEXT` is a file, `PATH!NAME` one whose reading fails with that error, `PATH@TARGET` a link,
`PATH/FROM..TO` a row of numbered files that are alike; `ip=` is what `ip -j addr` said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.twinserve.pair.plugins.module_utils.netdevs import parse_links
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device, read_devices
from fake_sysfs import EINVAL_FILE

TREES = Path(__file__).resolve().parent / "trees"
_LINE = re.compile(r"(?P<path>[^=!@]+?)(?:/(?P<first>\d+)\.\.(?P<last>\d+))?(?P<kind>[=!@])(?P<value>.*)")


@dataclass(frozen=True)
class Captured:
    """A node as it was: its file system root, and its IPv4 addresses by port."""

    root: Path
    addresses: dict[str, list[str]]

    def devices(self) -> list[Device]:
        """What the product reads from it."""
        return read_devices(self.root, self.addresses)


def plant(name: str, root: Path, longest_row: int = 8) -> Captured:
    """Lay a captured tree out below a folder.

    A thousand empty slots make six thousand files a tree, so of a row that is longer only the first are made.
    """
    addresses: dict[str, list[str]] = {}
    for path, kind, value in entries((TREES / f"{name}.txt").read_text(), longest_row):
        if path == "ip":
            addresses = {port: link["addresses"] for port, link in parse_links(value).items()}
        else:
            _put(root / "sys" / path, kind, value)
    return Captured(root, addresses)


def _put(file: Path, kind: str, value: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "=":
        file.write_text(f"{value}\n")
    elif kind == "@":
        file.symlink_to(value)
    else:
        assert value == "EINVAL", f"{file}: no file here fails with {value}"
        file.symlink_to(EINVAL_FILE)


def entries(text: str, longest_row: int = 1024) -> Iterator[tuple[str, str, str]]:
    """Path, kind and value of each file in the text, rows written out up to a length."""
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        assert found, line
        if found["first"] is None:
            yield found["path"], found["kind"], found["value"]
        else:
            first, last = int(found["first"]), int(found["last"])
            for number in range(first, min(last, first + longest_row - 1) + 1):
                yield f"{found['path']}/{number}", found["kind"], found["value"]
