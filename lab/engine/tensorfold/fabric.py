"""The RoCE side of a rank: its devices, whether they can work, and a real connection over each.

`root` is where /sys and /dev are. A rail's connection is TCP, bound to the netdev of the GID, so that crossed
or cut cables fail here as they would with RDMA.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MAX_DEVICES = 2
CONNECT_SECONDS = 5.0
DEFAULT_GID_INDEX = 3


class FabricError(Exception):
    """A device that cannot carry the all-gather; the text says which and why."""


@dataclass(frozen=True)
class Rail:
    """One RoCE device in use: its name, netdev and IPv4 address."""

    hca: str
    netdev: str
    address: str


def socket_interface_error(env: Mapping[str, str], root: Path) -> str | None:
    """Why NCCL finds no bootstrap interface, or None. The variable lists prefixes, `=` makes them exact."""
    wanted = env.get("NCCL_SOCKET_IFNAME")
    if not wanted or wanted.startswith("^"):
        return None
    present = [path.name for path in (root / "sys/class/net").iterdir()]
    exact = wanted.startswith("=")
    names = [name for name in wanted.lstrip("=").split(",") if name]
    if any(found == name or (not exact and found.startswith(name)) for name in names for found in present):
        return None
    return f"Bootstrap : no socket interface found: {wanted} (present: {', '.join(sorted(present))})"


def device_names(env: Mapping[str, str], root: Path) -> list[str]:
    """The devices to use, at most two: TF_ROCE_HCA, else NCCL_IB_HCA, else every ACTIVE one in name order."""
    given = env.get("TF_ROCE_HCA") or env.get("NCCL_IB_HCA")
    if given:
        return [name for name in given.split(",") if name][:MAX_DEVICES]
    base = root / "sys/class/infiniband"
    found = sorted(path.name for path in base.iterdir()) if base.is_dir() else []
    return [name for name in found if "ACTIVE" in _read(base / name / "ports/1/state")][:MAX_DEVICES]


def gid_index(env: Mapping[str, str]) -> int:
    """TF_ROCE_GID_INDEX, else NCCL_IB_GID_INDEX, else 3. A set but empty variable reads as 0."""
    for key in ("TF_ROCE_GID_INDEX", "NCCL_IB_GID_INDEX"):
        if key in env:
            text = env[key]
            if text and not text.isdecimal():
                raise FabricError(f"{key} is not a number: {text}")
            return int(text or 0)
    return DEFAULT_GID_INDEX


def open_rails(env: Mapping[str, str], root: Path) -> list[Rail]:
    """The rails this rank would use; FabricError for the first device that cannot work."""
    if not (root / "dev/infiniband").is_dir():
        raise FabricError("no RDMA device in this container: /dev/infiniband is missing")
    names = device_names(env, root)
    if not names:
        raise FabricError("no ACTIVE RoCE device")
    index = gid_index(env)
    return [_open_device(root / "sys/class/infiniband" / name, index) for name in names]


def _open_device(device: Path, index: int) -> Rail:
    port = device / "ports/1"
    if not device.is_dir():
        raise FabricError(f"hca {device.name}: no such device")
    state = _read(port / "state")
    if "ACTIVE" not in state:
        raise FabricError(f"hca {device.name}: port 1 is {state or 'absent'}, not ACTIVE")
    gid = ipaddress.IPv6Address(_read(port / f"gids/{index}") or "::")
    kind = _read(port / f"gid_attrs/types/{index}")
    if gid == ipaddress.IPv6Address("::"):
        raise FabricError(f"hca {device.name}: GID {index} is empty (errno 61)")
    if gid.is_link_local:
        raise FabricError(f"hca {device.name}: GID {index} is link-local ({gid})")
    if kind != "RoCE v2":
        raise FabricError(f"hca {device.name}: GID {index} is {kind or 'untyped'}, not RoCE v2")
    if gid.ipv4_mapped is None:
        raise FabricError(f"hca {device.name}: GID {index} ({gid}) is not an IPv4 address")
    return Rail(device.name, _read(port / f"gid_attrs/ndevs/{index}"), str(gid.ipv4_mapped))


def _read(path: Path) -> str:
    """A sysfs value; an unreadable one (an empty slot says EINVAL) is ''."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def listen_on(rail: Rail) -> socket.socket:
    """A listening socket on this rail's device and address; the port is the kernel's choice."""
    listener = _bound(rail)
    listener.listen(1)
    listener.settimeout(CONNECT_SECONDS * 2)
    return listener


def connect_over(mine: Rail, theirs: Rail, port: int) -> socket.socket:
    """A connection from this rail to the peer's; FabricError names both ends."""
    caller = _bound(mine)
    caller.settimeout(CONNECT_SECONDS)
    try:
        caller.connect((theirs.address, port))
    except OSError as error:
        caller.close()
        where = f"hca {mine.hca} ({mine.address}, {mine.netdev}) to hca {theirs.hca} ({theirs.address})"
        raise FabricError(f"{where}: {error.strerror or error}") from None
    return caller


def _bound(rail: Rail) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, rail.netdev.encode())
        bound.bind((rail.address, 0))
    except OSError as error:
        bound.close()
        raise FabricError(f"hca {rail.hca}: {rail.address} on {rail.netdev}: {error.strerror}") from None
    return bound
