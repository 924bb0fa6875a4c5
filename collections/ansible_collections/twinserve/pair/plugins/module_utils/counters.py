"""Error counters of an RDMA port. What they count from is unknown, so only a rise says something.

Drivers differ in which they have: mlx5 has both folders, a software device (rdma_rxe) only `hw_counters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .kernel_files import read_int

# What a rise means, by the file's name. Congestion marks are no errors, and neither are the unfinished
# requests of a connection that is closed (`*_cqe_flush_error`).
MEANINGS = {
    # ports/N/counters: the link
    "symbol_error": "bits are damaged on the cable",
    "link_error_recovery": "the link was trained anew",
    "link_downed": "the link went down",
    "local_link_integrity_errors": "too many bits are damaged on the cable",
    "excessive_buffer_overrun_errors": "packets came faster than the port could take them",
    "port_rcv_errors": "packets arrived damaged",
    "port_rcv_remote_physical_errors": "the other end marked packets as damaged",
    "port_rcv_constraint_errors": "packets arrived that the port may not take",
    "port_xmit_discards": "packets could not be sent and were dropped",
    "port_xmit_constraint_errors": "packets were not allowed out",
    # ports/N/hw_counters: RoCE
    "packet_seq_err": "the peer missed packets and asked for them again",
    "out_of_sequence": "packets are missing or overtook each other",
    "local_ack_timeout_err": "the peer did not acknowledge in time",
    "rnr_nak_retry_err": "the peer was not ready to receive until the tries ran out",
    "implied_nak_seq_err": "a later answer came while an earlier one is missing",
    "roce_adp_retrans": "packets were sent again, earlier than by the time limit",
    "roce_adp_retrans_to": "packets were sent again after the time limit",
    "duplicate_request": "the peer sent requests again, so answers were lost",
    "out_of_buffer": "nothing was ready to take a packet",
    "rx_icrc_encapsulated": "RoCE packets arrived with a wrong checksum",
    "req_remote_access_errors": "the peer refused access to its memory",
    "resp_remote_access_errors": "the peer asked for memory that it may not have",
    "resp_local_length_error": "a packet was longer than the room for it",
    # the same of rdma_rxe
    "out_of_seq_request": "packets are missing or overtook each other",
    "retry_exceeded_err": "the peer did not acknowledge until the tries ran out",
    "retry_rnr_exceeded_err": "the peer was not ready to receive until the tries ran out",
    "completer_retry_err": "packets were sent again",
    "send_err": "packets could not be sent",
}
_FOLDERS = ("counters", "hw_counters")


def read_counters(port: Path) -> dict[str, int]:
    """Read the error counters that a port's folder (`.../ports/1`) has."""
    found = ((name, read_int(port / folder / name)) for name in MEANINGS for folder in _FOLDERS)
    return {name: value for name, value in found if value is not None}


def rise(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """By how much counters rose. One that fell began anew with its driver, and tells nothing."""
    rose = {name: value - before[name] for name, value in after.items() if name in before}
    return {name: value for name, value in rose.items() if value > 0}


def describe(rose: Mapping[str, int]) -> list[str]:
    """Return a text for each counter that rose: `symbol_error (bits are damaged on the cable) rose by 3`."""
    return [f"{name} ({MEANINGS[name]}) rose by {value}" for name, value in rose.items()]
