"""What `ib_write_bw` (perftest) prints: its table, in every version, and its errors. Pure.

All goes to one stream, and notes about the processor's clock or the GPU may stand anywhere between, also
inside the table. So nothing is taken by its place but what stands under the column of the average.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .shell import last_line

# Without --report_gbits the numbers are MiB (2^20 bytes) a second; older versions call that MB.
_TO_GBITS = {"Gb/sec": 1.0, "MB/sec": 2**20 * 8 / 1e9, "MiB/sec": 2**20 * 8 / 1e9}
_COLUMN = re.compile(r"BW average\[(?P<unit>[^\]]+)\]")

# What GPU memory needs; a build without CUDA has neither.
GPU_OPTIONS = ("--use_cuda_dmabuf", "--use_data_direct")
BUILD = (
    "build perftest 26.04.17 or later with CUDA (./autogen.sh && ./configure --prefix=/usr/local "
    "CUDA_H_PATH=/usr/local/cuda/include/cuda.h && make && sudo make install)"
)

ACS = (
    "GPU memory cannot be registered for RDMA (error=524): the network card's DMA function and the GPU are "
    "in different IOMMU groups. `rdma_topo check` then says `FAIL Kernel iommu_group for DMA ... and GPU ... "
    "are not equal`; the ACS setting of the boot parameters decides it, and only you change those"
)
# By the first that matches, from the most exact to the most general.
_ERRORS = (
    (r"Couldn't allocate MR with error=524", ACS),
    (
        r"Couldn't allocate MR.*",
        "memory cannot be registered for RDMA ({line}): check free memory and `ulimit -l`",
    ),
    (
        r"Couldn't connect to (?P<where>\S+:\d+)",
        "{where} does not answer: a firewall on the rail, or the other end's ib_write_bw has ended",
    ),
    (r"IB device (?P<hca>\S+) not found", "ib_write_bw finds no RDMA device {hca}"),
    (
        r"Did not detect devices|Unable to find the Infiniband/RoCE device",
        "ib_write_bw finds no RDMA device: is the package ibverbs-providers installed?",
    ),
    (
        r"Failed to modify QP.*|Unable to Connect the HCA's through the link",
        "the two ends cannot be connected ({line}): their GIDs do not reach each other",
    ),
    (
        r"Failed status 12:.*|.*syndrom 0x81",
        "the other end does not acknowledge what is sent (transport retry exceeded): MTU or cable",
    ),
    (r"unrecognized option '(?P<option>[^']+)'", "this ib_write_bw has no option {option}"),
)


@dataclass(frozen=True)
class Measured:
    """The average rate in Gb/s, or the problem that kept it from being measured."""

    gbits: float | None
    problem: str = ""


def parse(text: str, code: int) -> Measured:
    """Read one run's output. A rate counts only when the program was content with its run."""
    gbits = _average(text)
    if code == 0 and gbits is not None and not _explained(text):
        return Measured(gbits)
    return Measured(None, _explained(text) or f"ib_write_bw: {last_line(text)} (exit {code})")


def missing_options(text: str) -> list[str]:
    """Which options for GPU memory the list of `--help` does not have."""
    return [option for option in GPU_OPTIONS if not re.search(rf"^\s+{option}\b", text, re.MULTILINE)]


def _average(text: str) -> float | None:
    """The last row's average: with several sizes the largest message is the last."""
    lines = text.splitlines()
    heads = [number for number, line in enumerate(lines) if _COLUMN.search(line)]
    if not heads:
        return None
    head = lines[heads[-1]]
    found = _COLUMN.search(head)
    factor = _TO_GBITS.get(found["unit"]) if found else None
    # `#bytes  #iterations  BW peak[..]  BW average[..]  MsgRate[..]`: blanks are inside names, but never two.
    names = re.split(r"\s{2,}|\t+", head.strip())
    column = next(number for number, name in enumerate(names) if _COLUMN.search(name))
    rows = [line.split() for line in lines[heads[-1] + 1 :] if re.match(r"\s*\d+\s+\d+\s+[\d.]+\s", line)]
    if factor is None or not rows or len(rows[-1]) <= column:
        return None
    return round(float(rows[-1][column]) * factor, 2)


def _explained(text: str) -> str:
    for pattern, says in _ERRORS:
        if found := re.search(pattern, text):
            return says.format(line=found[0].strip(), **found.groupdict())
    return ""
