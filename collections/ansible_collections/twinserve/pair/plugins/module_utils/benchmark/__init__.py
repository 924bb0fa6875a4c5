"""The benchmark: AIPerf over several concurrencies, a job that keeps what it has measured, and its report."""
