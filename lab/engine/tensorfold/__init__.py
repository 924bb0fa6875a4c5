"""A simulator of the TensorFold engine image: its command line, environment, log and HTTP contract, without a GPU."""

__version__ = "0.5.0"
