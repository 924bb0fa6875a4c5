"""Two virtual machines with real RoCE devices (`rdma_rxe`): what the simulated ones are checked against."""
