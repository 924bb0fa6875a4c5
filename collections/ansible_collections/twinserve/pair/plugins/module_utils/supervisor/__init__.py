"""The supervisor of a pair, on the head: it starts, watches and stops all ranks as one thing."""
