"""Run on a machine: print its RoCE devices and their ports, as /sys shows them, in few lines.

`PATH=TEXT` is a file, `PATH!NAME` one that cannot be read (NAME of the error), `PATH@TARGET` a link.
Numbered files in a row that are alike are one line, `PATH/FROM..TO`. Paths are below /sys; # is for people.
"""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SYS = Path("/sys")
_PORT_FILES = ("address", "carrier", "duplex", "flags", "mtu", "operstate", "speed")
# What the connection manager counts is of no use here, and long.
_LEFT_OUT = ("power", "subsystem", "uevent", "cm_rx_duplicates", "cm_rx_msgs", "cm_tx_msgs", "cm_tx_retries")
_LINK_KEYS = ("ifname", "flags", "mtu", "operstate", "address")
_ADDRESS_KEYS = ("family", "local", "prefixlen", "scope", "dynamic", "tentative")


def main() -> None:
    """Print the tree."""
    kernel = subprocess.run(["uname", "-r"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"# kernel {kernel}")
    print(f"# {' '.join(sys.argv[1:])}")
    devices = sorted((SYS / "class/infiniband").iterdir())
    lines = [line for device in devices for line in walk(device)]
    for name in sorted({attribute(device / "parent")[1:] for device in devices}):
        port = SYS / "class/net" / name
        lines += [(port / file, attribute(port / file)) for file in _PORT_FILES]
        lines.append((port / "device", f"@{(port / 'device').readlink()}"))
    for line in joined(lines):
        print(line)
    print(f"ip={json.dumps(addresses())}")


def walk(folder: Path) -> Iterator[tuple[Path, str]]:
    """All files below a folder with what reading them gives, numbers in order."""
    for entry in sorted(
        folder.iterdir(), key=lambda one: (int(one.name) if one.name.isdigit() else -1, one.name)
    ):
        if entry.name in _LEFT_OUT:
            continue
        if entry.is_symlink():
            yield entry, f"@{entry.readlink()}"
        elif entry.is_dir():
            yield from walk(entry)
        elif entry.stat().st_mode & 0o444:
            yield entry, attribute(entry)


def attribute(file: Path) -> str:
    """`=TEXT`, or `!NAME` of the error."""
    try:
        return f"={file.read_text().strip()}"
    except OSError as error:
        return f"!{errno.errorcode[error.errno or 0]}"


def joined(found: list[tuple[Path, str]]) -> Iterator[str]:
    """The lines; numbered files in a row with one content become one."""
    runs: list[tuple[Path, str, int, int]] = []
    for path, content in found:
        if not path.name.isdigit():
            runs.append((path, content, -1, -1))
            continue
        number = int(path.name)
        before = runs[-1] if runs else None
        if before and before[0] == path.parent and before[1] == content and before[3] == number - 1:
            runs[-1] = (path.parent, content, before[2], number)
        else:
            runs.append((path.parent, content, number, number))
    for path, content, first, last in runs:
        name = "" if first < 0 else f"/{first}" if first == last else f"/{first}..{last}"
        yield f"{path.relative_to(SYS)}{name}{content}"


def addresses() -> list[dict[str, object]]:
    """What `ip -j addr` says, without what changes from second to second."""
    said = subprocess.run(["ip", "-j", "addr"], capture_output=True, text=True, check=True).stdout
    return [
        {key: link[key] for key in _LINK_KEYS if key in link}
        | {
            "addr_info": [
                {key: one[key] for key in _ADDRESS_KEYS if key in one} for one in link.get("addr_info", [])
            ]
        }
        for link in json.loads(said)
    ]


if __name__ == "__main__":
    main()
