"""The counters of an RDMA port, by the names that mlx5 gives them, and how a bad cable makes them rise."""

from __future__ import annotations

# Traffic counters stay at zero: no RDMA traffic is played.
_PORT = """
VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery local_link_integrity_errors
multicast_rcv_packets multicast_xmit_packets port_rcv_constraint_errors port_rcv_data port_rcv_errors
port_rcv_packets port_rcv_remote_physical_errors port_rcv_switch_relay_errors port_xmit_constraint_errors
port_xmit_data port_xmit_discards port_xmit_packets port_xmit_wait symbol_error unicast_rcv_packets
unicast_xmit_packets
"""
_HARDWARE = """
duplicate_request implied_nak_seq_err lifespan local_ack_timeout_err np_cnp_sent np_ecn_marked_roce_packets
out_of_buffer out_of_sequence packet_seq_err req_cqe_error req_cqe_flush_error req_remote_access_errors
req_remote_invalid_request resp_cqe_error resp_cqe_flush_error resp_local_length_error
resp_remote_access_errors rnr_nak_retry_err roce_adp_retrans roce_adp_retrans_to roce_slow_restart
roce_slow_restart_cnps roce_slow_restart_trans rp_cnp_handled rp_cnp_ignored rx_atomic_requests
rx_icrc_encapsulated rx_read_requests rx_write_requests
"""
_FIXED = {"lifespan": 10}  # not a count: the milliseconds for which the kernel keeps a reading
# For each look of the simulator at a bad cable that carries a signal.
_WEAR = {"symbol_error": 7, "port_rcv_errors": 2, "packet_seq_err": 3, "out_of_sequence": 3}


class Counters:
    """The counters of one port since its host booted."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._had_carrier = False

    def see(self, carrier: bool) -> None:
        """Count a link that went down."""
        if self._had_carrier and not carrier:
            self._add("link_downed", 1)
        self._had_carrier = carrier

    def wear(self) -> None:
        """Count what a bad cable does in one look; without a signal it does nothing."""
        if self._had_carrier:
            for name, count in _WEAR.items():
                self._add(name, count)

    def files(self) -> dict[str, dict[str, int]]:
        """All counters, by folder and name."""
        return {
            folder: {name: self._values.get(name, _FIXED.get(name, 0)) for name in names.split()}
            for folder, names in (("counters", _PORT), ("hw_counters", _HARDWARE))
        }

    def _add(self, name: str, count: int) -> None:
        self._values[name] = self._values.get(name, 0) + count
