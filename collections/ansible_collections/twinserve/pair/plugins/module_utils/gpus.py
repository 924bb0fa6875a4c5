"""What `nvidia-smi` says of this node. On a GB10 memory reads `[N/A]`: it is the system's own."""

from __future__ import annotations

from dataclasses import dataclass

from .shell import CommandError, run


@dataclass(frozen=True)
class Gpus:
    """Names and UUIDs in the driver's order, its version, GiB by compute process (None: unknown).

    `memory` is total and used GiB of each, None where it has none of its own.
    """

    names: list[str]
    uuids: list[str]
    driver: str
    processes: dict[str, float | None]
    memory: list[tuple[float, float] | None]


def parse_gpus(text: str) -> tuple[list[str], list[str], str]:
    """Lines of `name, uuid, driver_version`, and more."""
    rows = _rows(text)
    return [row[0] for row in rows], [row[1] for row in rows], rows[0][2] if rows else ""


def parse_memory(text: str) -> list[tuple[float, float] | None]:
    """Of the same lines what follows: `memory.total, memory.used` in MiB, or no numbers."""
    return [
        (int(row[3]) / 1024, int(row[4]) / 1024) if len(row) > 4 and (row[3] + row[4]).isdigit() else None
        for row in _rows(text)
    ]


def _rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.count(",") >= 2]


def parse_processes(text: str) -> dict[str, float | None]:
    """Lines of `pid, MiB`; a driver that does not know the size says `[N/A]`."""
    processes: dict[str, float | None] = {}
    for line in text.splitlines():
        pid, _, used = (part.strip() for part in line.partition(","))
        if pid.isdigit():
            processes[pid] = round(int(used) / 1024, 2) if used.isdigit() else None
    return processes


def parse_bus_id(text: str, uuid: str) -> str | None:
    """Lines of `uuid, 00000009:06:00.0`; CUDA writes the domain with four digits."""
    for line in text.splitlines():
        one, _, address = (part.strip() for part in line.partition(","))
        if one == uuid and address.count(":") == 2:
            domain, _, rest = address.partition(":")
            return f"{domain[-4:]}:{rest}"
    return None


def bus_id(uuid: str) -> str:
    """Return the PCI address of a GPU. Raises `CommandError` for one that is not here."""
    text = run(["nvidia-smi", "--query-gpu=uuid,pci.bus_id", "--format=csv,noheader"], timeout=20)
    found = parse_bus_id(text, uuid)
    if found is None:
        raise CommandError(f"gpu_uuid {uuid} is no GPU of this node: nvidia-smi -L")
    return found


def read_gpus() -> Gpus:
    """Ask the driver. Raises `CommandError` with all that it says: its last line is not the reason (C-10)."""
    queries = [
        "--query-gpu=name,uuid,driver_version,memory.total,memory.used",
        "--query-compute-apps=pid,used_memory",
    ]
    try:
        gpus, used = (
            run(["nvidia-smi", one, "--format=csv,noheader,nounits"], timeout=20) for one in queries
        )
    except CommandError as error:
        said = " ".join(error.said.split())
        raise CommandError(f"nvidia-smi: {said}" if said else str(error)) from error
    names, uuids, driver = parse_gpus(gpus)
    return Gpus(names, uuids, driver, parse_processes(used), parse_memory(gpus))
