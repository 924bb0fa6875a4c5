"""A simulator of the TensorFold engine: its command line, environment, log and HTTP API, without a GPU."""

__version__ = "0.5.0"
