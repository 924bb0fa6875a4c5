"""Twinserve's pure code and its runtime: one source for the modules and for the nodes."""
