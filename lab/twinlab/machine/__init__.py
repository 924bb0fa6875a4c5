"""What a simulated machine shows of itself: RDMA devices, memory, cables."""
